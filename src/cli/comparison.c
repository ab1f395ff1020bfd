/* The document of a comparison: its values, runs and devices. */
#include "cli/comparison.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/file.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- values */

double compare_number(const cJSON *object, const char *path)
{
    const double limit = 9007199254740992.0; /* 2^53 */
    double number;
    return json_decimal_of(json_at(object, path), &number) && number >= 0 && number < limit ? number
                                                                                            : 0;
}

bool compare_same(const cJSON *a, const cJSON *b, const char *path)
{
    return strcmp(json_text(a, path), json_text(b, path)) == 0;
}

void compare_put(cJSON *object, const char *path, cJSON *item)
{
    const char *dot = strchr(path, '.');
    if (dot) {
        char *name = xasprintf("%.*s", (int)(dot - path), path);
        cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, name);
        compare_put(inner ? inner : cJSON_AddObjectToObject(object, name), dot + 1, item);
        free(name);
    } else if (!cJSON_ReplaceItemInObjectCaseSensitive(object, path, item)) {
        cJSON_AddItemToObject(object, path, item);
    }
}

void compare_put_number(cJSON *object, const char *path, double number)
{
    compare_put(object, path, cJSON_CreateNumber(number));
}

void compare_put_text(cJSON *object, const char *path, const char *text)
{
    char *clean = xstrdup(text);
    text_clean(clean, false);
    compare_put(object, path, cJSON_CreateString(clean));
    free(clean);
}

/* ---------------------------------------------------------------- runs and devices */

cJSON *compare_device(const struct comparison *comparison, size_t device)
{
    return cJSON_GetArrayItem(comparison->devices, (int)device);
}

cJSON *compare_device_of(const struct comparison *comparison, const cJSON *run)
{
    return compare_device(comparison, json_number_at(run, "device_at"));
}

cJSON *compare_transcript(const struct comparison *comparison, size_t transcript)
{
    return cJSON_GetArrayItem(comparison->transcripts, (int)transcript);
}

size_t compare_own_devices(const struct comparison *comparison)
{
    size_t count = 0;
    JSON_EACH(device, comparison->devices)
    {
        count += !json_at(device, "baseline");
    }
    return count;
}

bool compare_is_own(const struct comparison *comparison, const cJSON *run)
{
    return !json_at(compare_device_of(comparison, run), "baseline");
}

bool compare_is_right(const cJSON *run)
{
    return json_is(run, "outcome", "verified") || json_is(run, "outcome", "nothing to verify");
}

/* ---------------------------------------------------------------- filling */

cJSON *compare_add_run(struct comparison *comparison, size_t transcript, size_t device)
{
    cJSON *run = json_add_object(comparison->runs, NULL);
    compare_put_number(run, "transcript_at", (double)transcript);
    compare_put_number(run, "device_at", (double)device);
    return run;
}

cJSON *compare_add_judge(struct comparison *comparison, size_t transcript)
{
    bool differs = false;
    FOR_EACH_RUN_OF(run, comparison, transcript)
    {
        if (!compare_is_own(comparison, run))
            continue;
        if (json_is(compare_device_of(comparison, run), "index", COMPARE_REFERENCE))
            return NULL;
        differs |= json_is(run, "outcome", "different");
    }
    if (!differs)
        return NULL;
    cJSON *judge = json_add_object(comparison->judges, NULL);
    compare_put_number(judge, "transcript_at", (double)transcript);
    return judge;
}

size_t compare_end_early(struct comparison *comparison)
{
    size_t planned = 0, made = 0;
    for (cJSON *run = comparison->runs->child, *next; run; run = next) {
        next = run->next;
        if (!compare_is_own(comparison, run))
            continue;
        planned++;
        if (json_at(run, "outcome"))
            made++;
        else
            cJSON_Delete(cJSON_DetachItemViaPointer(comparison->runs, run));
    }
    compare_put_number(comparison->top, "interrupted_of_runs", (double)planned);
    return made;
}

/* ---------------------------------------------------------------- this machine */

enum { FACT_SIZE = 256 };

/* name: "AMD EPYC 9354 32-Core Processor"; model: "family 25, model 17, stepping 1". Both are "" if
 * Linux does not report them. */
static void describe_processor(char name[FACT_SIZE], char model[FACT_SIZE])
{
    static const struct {
        const char *key, *word;
    } facts[] = {{"cpu family", "family"},           {"model", "model"},
                 {"stepping", "stepping"},           {"microcode", "microcode"},
                 {"CPU implementer", "implementer"}, {"CPU part", "part"},
                 {"CPU revision", "revision"}};
    char line[512], key[32], value[FACT_SIZE];
    *name = *model = 0;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file) && *line != '\n') { /* first processor */
        if (sscanf(line, "%31[^\t:] : %255[^\n]", key, value) != 2)
            continue;
        if (strcmp(key, "model name") == 0)
            snprintf(name, FACT_SIZE, "%s", value);
        for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
            const size_t used = strlen(model);
            if (strcmp(key, facts[i].key) == 0)
                snprintf(model + used, FACT_SIZE - used, "%s%s %.40s", used > 0 ? ", " : "",
                         facts[i].word, value);
        }
    }
    if (file)
        fclose(file);
}

void compare_describe_load(struct comparison *comparison, const char *key)
{
    double load;
    cJSON *host = cJSON_GetObjectItemCaseSensitive(comparison->top, "host");
    compare_put_number(host, key, getloadavg(&load, 1) == 1 ? round(100 * load) / 100 : 0);
}

void comparison_init(struct comparison *comparison, uint64_t memory_bytes)
{
    char date[32] = "", system[256] = "", processor[FACT_SIZE], model[FACT_SIZE];
    const time_t now = time(NULL);
    struct tm parts;
    struct utsname names;
    cJSON *top = cJSON_CreateObject();
    *comparison = (struct comparison){.top = top, .judges = cJSON_CreateArray()};
    if (gmtime_r(&now, &parts))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (uname(&names) == 0)
        snprintf(system, sizeof system, "%s %s %s", names.sysname, names.release, names.machine);
    describe_processor(processor, model);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    JSON_ADD(top, STRING("healcl", healcl_version()), STRING("commit", healcl_commit()),
             STRING("date", date), STRING("command", ""), NUMBER("repeat", 1));
    JSON_ADD(json_add_object(top, "host"), STRING("system", system), STRING("processor", processor),
             STRING("model", model),
             NUMBER("processors", processors > 0 ? (uint64_t)processors : 0),
             NUMBER("memory", memory_bytes));
    compare_describe_load(comparison, "load_before");
    comparison->transcripts = cJSON_AddArrayToObject(top, "transcripts");
    comparison->devices = cJSON_AddArrayToObject(top, "devices");
    comparison->runs = cJSON_AddArrayToObject(top, "runs");
}

void comparison_release(struct comparison *comparison)
{
    cJSON_Delete(comparison->top);
    cJSON_Delete(comparison->judges);
    *comparison = (struct comparison){.top = NULL};
}

/* ---------------------------------------------------------------- files */

enum healcl_status compare_add_transcript(struct comparison *comparison, const char *path,
                                          struct healcl_error *error)
{
    enum { BLOCK = 1 << 16 };
    int file;
    TRY(file_open_regular(path, &file, error));
    XXH64_state_t *state = XXH64_createState();
    char *block = xmalloc(BLOCK), digest[24];
    uint64_t bytes = 0;
    ssize_t got;
    if (!state)
        xmalloc_fail();
    XXH64_reset(state, 0);
    for (; (got = read(file, block, BLOCK)) > 0; bytes += (uint64_t)got)
        XXH64_update(state, block, (size_t)got);
    snprintf(digest, sizeof digest, "%016" PRIx64, (uint64_t)XXH64_digest(state));
    free(block);
    XXH64_freeState(state);
    close(file);
    if (got < 0)
        FAIL(error, HEALCL_USAGE, "cannot read " PATH_FORMAT, path);
    cJSON *transcript = json_add_object(comparison->transcripts, NULL);
    compare_put_text(transcript, "file", path);
    compare_put_number(transcript, "bytes", (double)bytes);
    compare_put_text(transcript, "digest", digest);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- command lines */

/* Environment variables that change how transcripts run, or which devices exist. */
static void write_environment(FILE *stream)
{
    static const char *const variables[] = {
        "HEALCL_DEVICE",     "HEALCL_LACKS",           "HEALCL_TUNING",
        "HEALCL_VARIANT",    "LD_LIBRARY_PATH",        "OCL_ICD_VENDORS",
        "OCL_ICD_FILENAMES", "OPENCL_LAYERS",          "RUSTICL_ENABLE",
        "LP_NUM_THREADS",    "OMP_NUM_THREADS",        "OCLGRIND_BUILD_OPTIONS",
        "POCL_DEVICES",      "POCL_MAX_PTHREAD_COUNT", "HEALCL_OPENCL_LIBRARY",
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (!value || !*value)
            continue;
        fprintf(stream, "%s=", variables[i]);
        text_shell(stream, value);
        putc(' ', stream);
    }
}

void compare_put_command(cJSON *object, const char *command, const char *const *arguments,
                         size_t count)
{
    char *text;
    size_t size;
    FILE *stream = xopen_memstream(&text, &size);
    write_environment(stream);
    fprintf(stream, "healcl %s", command);
    for (size_t i = 0; i < count; i++) {
        putc(' ', stream);
        text_shell(stream, arguments[i]);
    }
    xclose(stream);
    compare_put_text(object, "command", text);
    free(text);
}
