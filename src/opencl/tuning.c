#include "opencl/tuning.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_tree.h"
#include "core/numbers.h"
#include "opencl/cache.h"

enum {
    LOCAL_SIZE_GPU = 256,         /* all drivers support this size, or report a smaller limit */
    ELEMENTS_PER_ITEM_CPU = 1024, /* a work-item costs some 10 ns, an element 0.1 to 1 ns */
    ELEMENTS_PER_ITEM_MOST = 1 << 20,
    BUILDS_AT_ONCE = 6, /* drivers start processes one after the other, in 0.2 s each on an H100 */
    ACCESS_BYTES = 16,  /* the most bytes that one instruction moves */
    COMPILED_AXES_MOST = 8, /* merged views have fewer */
    TRANSFORM_ROWS = 8,     /* a cache line */
    TRANSFORM_TILE = 8192,  /* 64 KiB, the local memory of most GPUs; with more memory, several
                               work-groups may share it */
    TRANSFORM_RADIX = 8,
    STAGING_BYTES = 4 << 20,     /* transfers of this size reach about the link's rate */
    ARGUMENT_BYTES = 1024,       /* the minimum in OpenCL's full profile */
    ARGUMENT_BYTES_FPGA = 256,   /* the minimum in the embedded profile, which boards have */
    PAST_CACHES_BYTES = 16 << 20 /* caches can keep smaller outputs for the next operation */
};

static const struct {
    const char *name;
    uint32_t styles; /* bit s: style s */
} families[FAMILY_COUNT] = {
#define GENERAL (1u << STYLE_GENERAL)
#define VECTORS (1u << STYLE_VECTORS)
#define LOCAL (1u << STYLE_LOCAL)
#define SINGLE (1u << STYLE_SINGLE)
#define FAMILY(name, styles) {#name, GENERAL | (styles)},
#include "opencl/families.def"
#undef FAMILY
};

static const char *const style_names[STYLE_COUNT] = {"general", "vectors", "local", "single"};

static const struct {
    const char *name, *meaning;
} tunables[TUNABLE_COUNT] = {
#define TUNABLE(name, least, most, is_power, meaning) {#name, meaning},
#include "opencl/tunables.def"
#undef TUNABLE
};

const char *tunable_name(enum tunable tunable)
{
    return tunables[tunable].name;
}

const char *tunable_meaning(enum tunable tunable)
{
    return tunables[tunable].meaning;
}

static const char *const multiply_names[MULTIPLY_COUNT] = {"doubles", "halves", "mul_hi"};

const char *multiply_name(enum multiply multiply)
{
    return multiply_names[multiply];
}

const char *kernel_family_name(enum kernel_family family)
{
    return families[family].name;
}

const char *kernel_style_name(enum kernel_style style)
{
    return style_names[style];
}

bool kernel_family_has(enum kernel_family family, enum kernel_style style)
{
    return families[family].styles >> style & 1;
}

/* What has changed a tuning, for reports. tuned_by is a set of bits, at most two of which occur
 * together; it indexes the names. A file of tunings/ comes before `healcl tune`, so that only the
 * environment can be combined with it. */
const char *tuning_source_name(const struct device_tuning *tuning, char text[TUNING_SOURCE_SIZE])
{
    static const char *const names[] = {NULL, "healcl tune", "the environment",
                                        "healcl tune and the environment", "the package"};
    if (!tuning->file)
        return names[tuning->tuned_by];
    snprintf(text, TUNING_SOURCE_SIZE, "tunings/%.80s%s", tuning->file,
             tuning->tuned_by == TUNED_BY_ENVIRONMENT ? " and the environment" : "");
    return text;
}

/* ---------------------------------------------------------------- defaults */

/* Sets a style for every family that has it. Returns whether any family has. */
static bool take_style(struct device_tuning *tuning, enum kernel_style style)
{
    bool any = false;
    for (int family = 0; family < FAMILY_COUNT; family++)
        if (kernel_family_has((enum kernel_family)family, style)) {
            tuning->styles[family] = style;
            any = true;
        }
    return any;
}

/* The type of device that a text names: "cpu", "gpu" or "accelerator". 0 for anything else, and for
 * NULL. */
static cl_device_type parse_kind(const char *text)
{
    static const cl_device_type types[] = {CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU,
                                           CL_DEVICE_TYPE_ACCELERATOR};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (text && strcmp(text, device_type_name(types[i])) == 0)
            return types[i];
    return 0;
}

/* Whether HEALCL_AS asks to tune the device as another kind of device. */
bool tuning_kind_is_forced(void)
{
    const char *kind = getenv("HEALCL_AS");
    return kind && *kind;
}

/* CPUs with narrower vectors convert between integers and doubles one by one. */
enum { AVX512_DOUBLES = 8 };

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The default tuning for a kind of device. A CPU runs the work-items of a group one after the
 * other: a few large ones suit it. A GPU needs as many small ones as possible, and an FPGA a single
 * one with fixed sizes. */
struct device_tuning tuning_default(const struct device_info *info)
{
    const cl_device_type forced_kind = parse_kind(getenv("HEALCL_AS"));
    const cl_device_type own_kind = device_emulates_gpu(info) ? CL_DEVICE_TYPE_GPU : info->type;
    const cl_device_type kind = forced_kind ? forced_kind : own_kind;
    const bool is_cpu = kind & CL_DEVICE_TYPE_CPU, is_fpga = kind & CL_DEVICE_TYPE_ACCELERATOR;
    const bool shares_memory = forced_kind ? is_cpu : info->unified_memory;
    const size_t largest_group = smaller_of(info->max_work_group_size, LOCAL_SIZE_GPU);
    const size_t argument_bytes =
        smaller_of(info->max_parameter_bytes, is_fpga ? ARGUMENT_BYTES_FPGA : ARGUMENT_BYTES);
    const uint32_t local_size = is_cpu ? 1 : (uint32_t)1 << log2_of(largest_group);
    const bool converts_one_by_one = is_cpu && info->double_width < AVX512_DOUBLES;
    /* Independent of HEALCL_AS: */
    const bool has_gpu_driver = info->type & CL_DEVICE_TYPE_GPU;
    const bool is_real_gpu = has_gpu_driver && !device_is_emulator(info);
    struct device_tuning tuning = {
        .local_size = local_size,
        .elements_per_item = is_cpu ? ELEMENTS_PER_ITEM_CPU : 1,
        .access_bytes = is_cpu ? 1 : ACCESS_BYTES,
        .compiled_axes = is_cpu ? 0 : COMPILED_AXES_MOST,
        .transform_local_size = local_size,
        .transform_rows = TRANSFORM_ROWS,
        .transform_tile = TRANSFORM_TILE,
        .transform_radix = TRANSFORM_RADIX,
        .transform_rows_radix = TRANSFORM_RADIX,
        .launches_at_once = is_cpu && info->launches_overlap ? LAUNCHES_AT_ONCE_MAX : 1,
        .queues_overlap = has_gpu_driver,
        .builds_at_once = is_real_gpu ? BUILDS_AT_ONCE : 1,
        .argument_bytes = (uint32_t)argument_bytes,
        .staging_bytes = shares_memory ? 0 : STAGING_BYTES,
        .multiply = converts_one_by_one ? MULTIPLY_BY_HALVES : MULTIPLY_BY_DOUBLES,
        .past_caches_bytes = PAST_CACHES_BYTES};
    if (is_cpu && info->little_endian) /* kernels with vectors need that order */
        (void)take_style(&tuning, STYLE_VECTORS);
    else if (!is_cpu)
        (void)take_style(&tuning, is_fpga ? STYLE_SINGLE : STYLE_LOCAL);
    return tuning;
}

/* ---------------------------------------------------------------- text */

/* Parses a number of decimal digits only. Stops before it could overflow; the digits left over then
 * make it fail. */
static bool parse_number(const char *text, uint64_t *value)
{
    const char *digit = text;
    for (*value = 0; *digit >= '0' && *digit <= '9' && *value <= UINT32_MAX; digit++)
        *value = *value * 10 + (uint64_t)(*digit - '0');
    return digit > text && !*digit;
}

/* Parses the name of a style, such as "vectors". */
static bool parse_kernel_style(const char *text, enum kernel_style *style)
{
    int s = 0;
    while (s < STYLE_COUNT && strcmp(text, style_names[s]) != 0)
        s++;
    *style = (enum kernel_style)s;
    return s < STYLE_COUNT;
}

/* Parses the value of a tunable, a number or the name of a way to multiply. Returns false if it is
 * outside of the range in tunables.def, which may depend on the device. */
static bool parse_tunable(enum tunable tunable, const char *text, const struct device_info *info,
                          uint32_t *value)
{
    const struct {
        uint64_t least, most;
        bool is_power; /* whether it must be a power of two */
    } ranges[TUNABLE_COUNT] = {
#define TUNABLE(name, least, most, is_power, meaning) {least, most, is_power},
#include "opencl/tunables.def"
#undef TUNABLE
    };
    uint64_t number = 0;
    if (tunable == TUNABLE_multiply)
        while (number < MULTIPLY_COUNT && strcmp(text, multiply_names[number]) != 0)
            number++;
    else if (!parse_number(text, &number))
        return false;
    if (number < ranges[tunable].least || number > ranges[tunable].most ||
        (ranges[tunable].is_power && (number & (number - 1)) != 0))
        return false;
    *value = (uint32_t)number;
    return true;
}

/* Applies one item: "local_size=64", "transform=vectors", or "vectors" for every family that has
 * this style. Cuts the item at its '='. */
static bool parse_item(struct device_tuning *tuning, char *item, const struct device_info *info)
{
    enum kernel_style style;
    char *value = strchr(item, '=');
    if (!value)
        return parse_kernel_style(item, &style) && take_style(tuning, style);
    *value++ = 0;
    for (int i = 0; i < TUNABLE_COUNT; i++)
        if (strcmp(item, tunable_name((enum tunable)i)) == 0)
            return parse_tunable((enum tunable)i, value, info, &tuning->values[i]);
    for (int family = 0; family < FAMILY_COUNT; family++)
        if (strcmp(item, families[family].name) == 0 && parse_kernel_style(value, &style) &&
            kernel_family_has((enum kernel_family)family, style)) {
            tuning->styles[family] = style;
            return true;
        }
    return false;
}

/* Applies the items of a list, from left to right. what: where the text is from, for the message.
 * After an error the tuning may be changed in part. */
enum healcl_status tuning_parse(struct device_tuning *tuning, const char *text, const char *what,
                                const struct device_info *info, struct healcl_error *error)
{
    for (const char *item = text; *text; item += strcspn(item, ",") + 1) {
        char copy[96];
        const size_t length = strcspn(item, ",");
        snprintf(copy, sizeof copy, "%.*s", (int)length, item);
        if (length >= sizeof copy || !parse_item(tuning, copy, info))
            FAIL(error, HEALCL_USAGE,
                 "%s is '%.200s', but must look like "
                 "local_size=64,elements_per_item=4,transform_local_size=64,transform=vectors "
                 "(local sizes are powers of two up to %zu; docs/KERNELS.md lists styles)",
                 what, text, info->max_work_group_size);
        if (item[length] == 0)
            break;
    }
    return HEALCL_OK;
}

/* Writes a tunable's value as tuning_parse reads it: a number, or the name of a way to multiply. */
void tunable_format(const struct device_tuning *tuning, enum tunable tunable,
                    char text[TUNABLE_TEXT_SIZE])
{
    const uint32_t value = tuning->values[tunable];
    if (tunable == TUNABLE_multiply)
        snprintf(text, TUNABLE_TEXT_SIZE, "%s", multiply_names[value]);
    else
        snprintf(text, TUNABLE_TEXT_SIZE, "%u", value);
}

/* Writes a tuning as a list that tuning_parse can read: all tunables, then the style of each
 * family. */
void tuning_format(const struct device_tuning *tuning, char text[TUNING_TEXT_SIZE])
{
    int used = 0;
    for (int i = 0; i < TUNABLE_COUNT; i++) {
        char value[TUNABLE_TEXT_SIZE];
        tunable_format(tuning, (enum tunable)i, value);
        used += snprintf(text + used, (size_t)(TUNING_TEXT_SIZE - used), "%s%s=%s",
                         i > 0 ? "," : "", tunable_name((enum tunable)i), value);
    }
    for (int family = 0; family < FAMILY_COUNT; family++)
        used += snprintf(text + used, (size_t)(TUNING_TEXT_SIZE - used), ",%s=%s",
                         families[family].name, style_names[tuning->styles[family]]);
}

/* ---------------------------------------------------------------- files of tunings/ */

enum { TUNING_FILE_VALUES_MAX = 256 };

/* The text of a device that a pattern of a file of tunings/ is compared with, by the pattern's key.
 * NULL for an unknown key. */
static const char *text_of_key(const struct device_info *info, const char *key)
{
    const struct {
        const char *key, *text;
    } rows[] = {{"vendor", info->vendor},
                {"architecture", info->architecture},
                {"name", info->name},
                {"driver", info->driver}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].key, key) == 0)
            return rows[i].text;
    return NULL;
}

/* Compares the patterns of a file of tunings/ with the device. *specificity: the number of
 * characters that are not wildcards, by which the most specific file is chosen; 0 if a pattern does
 * not match. */
static enum healcl_status match_patterns(const cJSON *patterns, const struct device_info *info,
                                         uint32_t *specificity, struct healcl_error *error)
{
    bool all_match = true;
    *specificity = 0;
    const cJSON *pattern;
    cJSON_ArrayForEach(pattern, patterns)
    {
        const char *expected = cJSON_GetStringValue(pattern);
        const char *actual = text_of_key(info, pattern->string);
        if (!actual || !expected)
            REFUSE(error,
                   "device: '%.40s' is not a pattern for vendor, architecture, name or driver",
                   pattern->string);
        all_match = all_match && fnmatch(expected, actual, 0) == 0;
        for (; *expected; expected++)
            *specificity += *expected != '*' && *expected != '?';
    }
    if (*specificity == 0)
        REFUSE(error, "device: a pattern must contain more than wildcards");
    if (!all_match)
        *specificity = 0;
    return HEALCL_OK;
}

/* Applies one value of a file, by making it an item such as "local_size=64". A ',' would make it
 * two items, so it is refused. */
static enum healcl_status tuning_take_value(const cJSON *value, const struct device_info *info,
                                            struct device_tuning *tuning,
                                            struct healcl_error *error)
{
    char text[96];
    if (cJSON_IsNumber(value))
        snprintf(text, sizeof text, "%.40s=%.17g", value->string, value->valuedouble);
    else
        snprintf(text, sizeof text, "%.40s=%.40s", value->string,
                 cJSON_IsString(value) ? value->valuestring : "");
    if (strchr(text, ',') || tuning_parse(tuning, text, "", info, NULL) != HEALCL_OK)
        REFUSE(error, "tuning: '%s' is neither a tunable in its range nor a family's style", text);
    return HEALCL_OK;
}

/* Checks the parsed JSON of a file, and applies its values if its patterns match the device. All
 * values are checked even if the patterns do not match. */
static enum healcl_status take_file(const cJSON *file, const struct device_info *info,
                                    struct device_tuning *tuning, uint32_t *specificity,
                                    struct healcl_error *error)
{
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(file, "device"), *value;
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(file, "tuning");
    struct device_tuning changed = *tuning;
    if (cJSON_GetArraySize(file) != 3 || !cJSON_IsObject(device) || !cJSON_IsObject(values) ||
        !cJSON_IsString(cJSON_GetObjectItemCaseSensitive(file, "comment")))
        REFUSE(error, "it is not an object with just comment, device and tuning");
    TRY(match_patterns(device, info, specificity, error));
    cJSON_ArrayForEach(value, values)
    {
        TRY(tuning_take_value(value, info, &changed, error));
    }
    if (*specificity > 0)
        *tuning = changed;
    return HEALCL_OK;
}

/* Parses one file of tunings/, and changes the tuning if the file is for this device. Errors name
 * the file. */
enum healcl_status tuning_file_read(const char *name, const char *text,
                                    const struct device_info *info, struct device_tuning *tuning,
                                    uint32_t *specificity, struct healcl_error *error)
{
    cJSON *file = NULL;
    size_t stop = 0;
    *specificity = 0;
    enum healcl_status status =
        json_tree_read(text, strlen(text), TUNING_FILE_VALUES_MAX, &file, &stop, error);
    if (status == HEALCL_OK && !file)
        status = ERROR(error, HEALCL_REFUSED, "it is not JSON at byte %zu", stop);
    THEN(status, take_file(file, info, tuning, specificity, error));
    cJSON_Delete(file);
    if (status == HEALCL_REFUSED)
        error_prefix(error, "tunings/%s: ", name);
    return status;
}

/* Changes the tuning by the most specific embedded file whose patterns match the device. The table
 * has the name and the text of each file in turn. A file that cannot be applied is skipped: tests
 * read all files, so its values are for larger devices. */
void tuning_of_files(const struct device_info *info, struct device_tuning *tuning)
{
    const struct device_tuning original = *tuning;
    uint32_t best = 0, specificity;
    for (const char *const *file = healcl_tuning_files; *file; file += 2) {
        struct device_tuning changed = original;
        if (tuning_file_read(file[0], file[1], info, &changed, &specificity, NULL) != HEALCL_OK ||
            specificity <= best)
            continue;
        best = specificity;
        *tuning = changed;
        tuning->file = file[0];
    }
}

/* ---------------------------------------------------------------- kept */

/* The name of a cached tuning of the device. kind is "tuning" or "kernels". The version "1" must
 * change if the meaning of an unchanged text does. */
static void tuning_cache_name(const struct device_info *info, const char *kind,
                              char name[CACHE_NAME_SIZE])
{
    cache_name(info, kind, 1, (const char *const[]){"1"}, name);
}

/* Changes the tuning to what `healcl tune` has cached for this device and driver. Returns whether
 * it did. A cached text has all tunables, so that nothing of a file is left. */
bool tuning_read_cached(struct device_tuning *tuning, const struct device_info *info)
{
    char name[CACHE_NAME_SIZE], text[TUNING_TEXT_SIZE];
    struct device_tuning cached = *tuning;
    tuning_cache_name(info, "tuning", name);
    if (!cache_read_text(name, sizeof text, text))
        return false;
    bool is_valid = tuning_parse(&cached, text, name, info, NULL) == HEALCL_OK;
    if (is_valid) {
        *tuning = cached;
        tuning->tuned_by |= TUNED_BY_KEPT;
        tuning->file = NULL;
    }
    tuning->cached_is_unreadable = !is_valid;
    return is_valid;
}

/* Selects a way to multiply vectors that the self-test has not found to be wrong. If all are wrong,
 * selects styles without vectors. */
static void avoid_wrong(const struct device_info *info, struct device_tuning *tuning)
{
    for (int tried = 0; tried < MULTIPLY_COUNT; tried++) {
        const bool is_wrong = info->multiply_wrong >> tuning->multiply & 1;
        if (!is_wrong)
            return;
        tuning->multiply = (tuning->multiply + 1) % MULTIPLY_COUNT;
    }
    (void)take_style(tuning, STYLE_GENERAL);
}

/* Whether any family uses vectors: only these need a way to multiply vectors. */
bool tuning_has_vectors(const struct device_tuning *tuning)
{
    bool any = false;
    for (int family = 0; family < FAMILY_COUNT; family++)
        any |= tuning->styles[family] == STYLE_VECTORS;
    return any;
}

/* The tuning that a device is opened with. Later sources change earlier ones: the kind's default,
 * the file of tunings/, `healcl tune`, the environment. If the kind is given by HEALCL_AS, files
 * and cached tunings, which are for the real device, are ignored. */
enum healcl_status tuning_of_device(const struct device_info *info, struct device_tuning *tuning,
                                    struct healcl_error *error)
{
    static const char *const variables[] = {"HEALCL_TUNING", "HEALCL_VARIANT"};
    const bool kind_is_forced = tuning_kind_is_forced();
    *tuning = tuning_default(info);
    if (kind_is_forced && parse_kind(getenv("HEALCL_AS")) == 0)
        FAIL(error, HEALCL_USAGE, "HEALCL_AS is '%.200s', not cpu, gpu or accelerator",
             getenv("HEALCL_AS"));
    if (kind_is_forced) {
        tuning->tuned_by |= TUNED_BY_ENVIRONMENT;
    } else {
        tuning_of_files(info, tuning);
        (void)tuning_read_cached(tuning, info);
    }
    struct device_tuning changed = *tuning;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *text = getenv(variables[i]);
        if (!text || !*text)
            continue;
        TRY(tuning_parse(&changed, text, variables[i], info, error));
        changed.tuned_by |= TUNED_BY_ENVIRONMENT;
    }
    *tuning = changed;
    avoid_wrong(info, tuning);
    return HEALCL_OK;
}

/* Caches a tuning for this device and driver. *path: the file that was written, or NULL. */
enum healcl_status tuning_cache(const struct device_tuning *tuning, const struct device_info *info,
                                char **path, struct healcl_error *error)
{
    char name[CACHE_NAME_SIZE], text[TUNING_TEXT_SIZE];
    tuning_cache_name(info, "tuning", name);
    tuning_format(tuning, text);
    return cache_write(name, text, strlen(text), path, error);
}

/* ---------------------------------------------------------------- kernels of others */

/* The choice among the candidates with hash `of`, or 0 if none was made. The text is searched for
 * the hash's 16 digits and '='. */
uint32_t kernel_choices_find(const struct kernel_choices *choices, uint64_t of)
{
    char key[KERNEL_CHOICE_SIZE];
    const size_t length = (size_t)snprintf(key, sizeof key, "%016" PRIx64 "=", of);
    const char *item = strstr(choices->text, key);
    return item ? (uint32_t)strtoul(item + length, NULL, 10) : 0;
}

/* Removes a choice from the text: up to the blank behind it. */
static void drop_choice(char *item)
{
    const char *next = item + strcspn(item, " ") + 1;
    memmove(item, next, strlen(next) + 1);
}

/* Adds a choice at the end of the text, and removes an earlier one with the same hash. The oldest
 * choices, at the start, are dropped to make room. */
void kernel_choices_set(struct kernel_choices *choices, uint64_t of, uint32_t choice)
{
    char item[KERNEL_CHOICE_SIZE], *text = choices->text;
    const int length = snprintf(item, sizeof item, "%016" PRIx64 "=", of);
    char *earlier = strstr(text, item);
    if (earlier)
        drop_choice(earlier);
    snprintf(item + length, sizeof item - (size_t)length, "%" PRIu32 " ", choice);
    while (strlen(text) + strlen(item) >= sizeof choices->text)
        drop_choice(text);
    strcat(text, item);
}

/* Reads a list such as "0123abcd=2 89ef=1": hashes in hexadecimal, and choices. If anything else
 * occurs, there are no choices, and it returns false. */
bool kernel_choices_parse(struct kernel_choices *choices, const char *text)
{
    *choices = (struct kernel_choices){.text = ""};
    while (*text) {
        char *end;
        const uint64_t hash = strtoull(text, &end, 16);
        const bool is_pair = *end == '=';
        if (is_pair)
            kernel_choices_set(choices, hash, (uint32_t)strtoul(end + 1, &end, 10));
        if (!is_pair || (*end != 0 && *end != ' ')) {
            choices->text[0] = 0;
            return false;
        }
        text = *end == ' ' ? end + 1 : end;
    }
    return true;
}

/* Reads the cached choices between vendors' kernels. None if HEALCL_AS is set: they were measured
 * for the real kind of device. */
void kernel_choices_read_cached(struct kernel_choices *choices, const struct device_info *info)
{
    char name[CACHE_NAME_SIZE], text[KERNEL_CHOICES_SIZE];
    choices->text[0] = 0;
    if (tuning_kind_is_forced())
        return;
    tuning_cache_name(info, "kernels", name);
    if (cache_read_text(name, sizeof text, text))
        (void)kernel_choices_parse(choices, text);
}

enum healcl_status kernel_choices_cache(const struct kernel_choices *choices,
                                        const struct device_info *info, char **path,
                                        struct healcl_error *error)
{
    char name[CACHE_NAME_SIZE];
    tuning_cache_name(info, "kernels", name);
    return cache_write(name, choices->text, strlen(choices->text), path, error);
}
