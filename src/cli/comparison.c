/* The document of a comparison: its values, runs and devices. It is filled from JSON that child
 * processes wrote or that was saved. */
#include "cli/comparison.h"

#include <math.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/file.h"
#include "core/json_tree.h"

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
        const char *name = xformat("%.*s", (int)(dot - path), path);
        cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, name);
        compare_put(inner ? inner : cJSON_AddObjectToObject(object, name), dot + 1, item);
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
    char date[32] = "", processor[FACT_SIZE], model[FACT_SIZE];
    const time_t now = time(NULL);
    struct tm parts;
    struct utsname names;
    cJSON *top = cJSON_CreateObject();
    *comparison = (struct comparison){.top = top, .judges = cJSON_CreateArray()};
    if (gmtime_r(&now, &parts))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    const char *system =
        uname(&names) == 0 ? xformat("%s %s %s", names.sysname, names.release, names.machine) : "";
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
    char *block = xmalloc(BLOCK);
    uint64_t bytes = 0;
    ssize_t got;
    if (!state)
        xmalloc_fail();
    XXH64_reset(state, 0);
    for (; (got = read(file, block, BLOCK)) > 0; bytes += (uint64_t)got)
        XXH64_update(state, block, (size_t)got);
    const char *digest = xformat("%016" PRIx64, (uint64_t)XXH64_digest(state));
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
static const char *environment_text(void)
{
    static const char *const variables[] = {
        "HEALCL_DEVICE",     "HEALCL_LACKS",           "HEALCL_TUNING",
        "HEALCL_VARIANT",    "LD_LIBRARY_PATH",        "OCL_ICD_VENDORS",
        "OCL_ICD_FILENAMES", "OPENCL_LAYERS",          "RUSTICL_ENABLE",
        "LP_NUM_THREADS",    "OMP_NUM_THREADS",        "OCLGRIND_BUILD_OPTIONS",
        "POCL_DEVICES",      "POCL_MAX_PTHREAD_COUNT", "HEALCL_OPENCL_LIBRARY",
    };
    const char *text = "";
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            text = xformat("%s%s=%s ", text, variables[i], text_shell(value));
    }
    return text;
}

void compare_put_command(cJSON *object, const char *command, const char *const *arguments,
                         size_t count)
{
    const char *text = xformat("%shealcl %s", environment_text(), command);
    for (size_t i = 0; i < count; i++)
        text = xformat("%s %s", text, text_shell(arguments[i]));
    compare_put_text(object, "command", text);
}

/* ---------------------------------------------------------------- JSON that is not trusted */

enum { DIFFERENCES_KEPT = 20 };

/* Limits for the JSON of a process or of a saved comparison. A run has some hundred values. */
enum { VALUES_MAX = 1 << 20, FILE_MAX = 32 << 20 };

/* ---------------------------------------------------------------- trees */

static void clean(cJSON *value)
{
    for (; value; value = value->next) {
        if (value->valuestring)
            text_clean(value->valuestring, false);
        clean(value->child);
    }
}

/* Parses the output of a process. Returns NULL if it is not JSON or too large. Freed with
 * cJSON_Delete. */
static cJSON *tree_of(const char *text)
{
    cJSON *tree = NULL;
    if (text && json_tree_read(text, strlen(text), VALUES_MAX, &tree, NULL, NULL) != HEALCL_OK)
        return NULL;
    clean(tree);
    return tree;
}

enum healcl_status compare_read_file(const char *path, cJSON **tree, struct healcl_error *error)
{
    unsigned char *text;
    size_t size;
    *tree = NULL;
    TRY(file_read(path, FILE_MAX, &text, &size, error));
    const enum healcl_status status =
        json_tree_read((const char *)text, size, VALUES_MAX, tree, NULL, error);
    free(text);
    clean(*tree);
    if (status == HEALCL_OK)
        return HEALCL_OK;
    error_prefix(error, PATH_FORMAT ": ", path);
    if (error)
        error->status = HEALCL_USAGE;
    return HEALCL_USAGE;
}

/* ---------------------------------------------------------------- devices */

cJSON *compare_add_device(struct comparison *comparison, const cJSON *source)
{
    cJSON *device = json_add_object(comparison->devices, NULL);
    compare_copy(device, source, compare_device_columns);
    return device;
}

size_t compare_add_devices(struct comparison *comparison, const char *text, bool default_only,
                           bool *is_of_driver)
{
    cJSON *top = tree_of(text);
    size_t added = 0;
    *is_of_driver = json_is(top, "error.cause", "driver");
    for (int others = 0; others <= !default_only; others++)
        JSON_EACH(source, json_at(top, "devices"))
        {
            const bool is_default = cJSON_IsTrue(json_at(source, "default"));
            if (others ? is_default || !cJSON_IsTrue(json_at(source, "usable")) : !is_default)
                continue;
            compare_add_device(comparison, source);
            added++;
        }
    cJSON_Delete(top);
    return added;
}

void compare_take_rates(cJSON *device, const char *text)
{
    cJSON *top = tree_of(text);
    JSON_EACH(source, json_at(top, "devices"))
    {
        if (cJSON_IsTrue(json_at(source, "default")))
            compare_copy(device, source, compare_device_columns);
    }
    cJSON_Delete(top);
}

/* ---------------------------------------------------------------- parts of runs */

static void put_times(cJSON *run, const char *path, const cJSON *list)
{
    cJSON *times = cJSON_CreateArray();
    JSON_EACH(item, list)
    {
        cJSON_AddItemToArray(times, cJSON_CreateNumber((double)json_number_of(item)));
    }
    compare_put(run, path, times);
}

/* key: the key of the whole times, which differs between a process and a saved comparison. */
static void put_samples(cJSON *run, const cJSON *source, const char *key)
{
    static const char *const paths[] = {"split.decode_ns", "split.transfer_ns", "split.compute_ns",
                                        "steady.requests_ns"};
    put_times(run, "samples_ns", json_at(source, key));
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (cJSON_GetArraySize(json_at(source, paths[i])) > 0)
            put_times(run, paths[i], json_at(source, paths[i]));
    if (json_at(run, "split.compute_ns"))
        compare_put_text(run, "split.clock", "host");
    if (cJSON_GetArraySize(json_at(run, "samples_ns")) == 0)
        return;
    const bool by_host = json_is(source, "profile.clock", "host");
    compare_put_text(run, "profile.clock", by_host ? "host" : "device");
    put_times(run, "profile.runs_ns", json_at(source, "profile.runs_ns"));
}

static void put_differences(cJSON *run, const cJSON *source)
{
    cJSON *list = cJSON_CreateArray();
    JSON_EACH(item, json_at(source, "differences"))
    {
        if (cJSON_IsString(item) && cJSON_GetArraySize(list) < DIFFERENCES_KEPT)
            cJSON_AddItemToArray(list, cJSON_CreateString(item->valuestring));
    }
    compare_put(run, "differences", list);
}

static void add_up(cJSON *part, const char *key, double number)
{
    compare_put_number(part, key, compare_number(part, key) + number);
}

/* Adds a segment, or operations of a kind, to a list. merged: adds to an item with the same
 * name. */
static void add_part(cJSON *list, const cJSON *source, const char *count_key, bool merged)
{
    const char *name = json_text(source, "name"), *reason = json_text(source, "fallback_reason");
    cJSON *part = merged ? json_row(list, "name", name) : json_add_object(list, NULL);
    compare_put_text(part, "name", name);
    add_up(part, count_key, compare_number(source, count_key));
    add_up(part, "bytes",
           compare_number(source, "bytes") + compare_number(source, "bytes_up") +
               compare_number(source, "bytes_down"));
    add_up(part, "time_ns", compare_number(source, "time_ns"));
    if (compare_number(source, "fallbacks") == 0)
        return;
    add_up(part, "fallbacks", compare_number(source, "fallbacks"));
    if (!*json_text(part, "fallback_reason"))
        compare_put_text(part, "fallback_reason", reason);
}

static void put_parts(cJSON *run, const cJSON *source)
{
    cJSON *segments = cJSON_CreateArray(), *kinds = cJSON_CreateArray();
    JSON_EACH(segment, json_at(source, "segments"))
    {
        add_part(segments, segment, "operations", false);
        JSON_EACH(kind, json_at(segment, "operations_by_kind"))
        {
            add_part(kinds, kind, "count", true);
        }
    }
    JSON_EACH(kind, json_at(source, "ops"))
    {
        add_part(kinds, kind, "count", true);
    }
    compare_put(run, "segments", segments);
    compare_put(run, "ops", kinds);
}

/* ---------------------------------------------------------------- outcomes */

/* Checks that a process's output is consistent, because a driver in it may write anything. */
static const char *outcome_of_claim(const cJSON *run)
{
    const double total = compare_number(run, "results.total"),
                 compared = compare_number(run, "results.compared");
    const bool agrees =
        compared > 0 && compared <= total && compare_number(run, "results.different") == 0;
    return agrees ? "verified" : "unproven";
}

/* Finds the outcome from the exit code (src/cli/cli.h) and the JSON of a process that ended without
 * a signal. */
static const char *outcome_of_exit(const cJSON *top, const cJSON *run, int code)
{
    const cJSON *verified = json_at(top, "verified");
    if (code == 0 && cJSON_IsTrue(verified))
        return outcome_of_claim(run);
    if (code == 0 && cJSON_IsNull(verified))
        return "nothing to verify";
    if (code == 1 && cJSON_IsFalse(verified))
        return "different";
    return code == 3 && json_is(top, "error.status", "refused") ? "refused" : "failed";
}

static const char *outcome_of_end(const cJSON *top, cJSON *run,
                                  const struct process_result *process)
{
    switch (process->end) {
    case PROCESS_EXITED:
        compare_put_number(run, "exit_code", process->code & 0xff);
        return process->is_own ? outcome_of_exit(top, run, process->code) : "failed";
    case PROCESS_KILLED: compare_put_number(run, "signal", process->code & 0xff); return "crashed";
    case PROCESS_TIMED_OUT:
    case PROCESS_INTERRUPTED: break;
    }
    return "timed out";
}

static void put_outcome(cJSON *run, const char *outcome, const char *message)
{
    compare_put_text(run, "outcome", outcome);
    const bool verified = strcmp(outcome, "verified") == 0;
    const bool is_known = verified || strcmp(outcome, "different") == 0;
    compare_put(run, "verified", is_known ? cJSON_CreateBool(verified) : cJSON_CreateNull());
    if (strcmp(outcome, "unproven") == 0)
        message =
            "the process reports that its results are verified, but its counts of results do not";
    compare_put_text(run, "message", compare_is_right(run) ? "" : message);
}

/* ---------------------------------------------------------------- runs */

/* Copies the members that JSON of a process and saved JSON share. */
static void put_run(const struct comparison *comparison, cJSON *run, const cJSON *source,
                    const char *samples)
{
    const cJSON *device = compare_device_of(comparison, run);
    const cJSON *transcript = compare_transcript(comparison, json_number_at(run, "transcript_at"));
    const cJSON *kernels = json_at(source, "manifest_kernels");
    compare_put_text(run, "transcript", json_text(transcript, "file"));
    compare_put_text(run, "device", json_text(device, "name"));
    compare_put_text(run, "platform", json_text(device, "platform"));
    compare_put_text(run, "driver", json_text(device, "driver"));
    compare_copy(run, source, compare_run_columns);
    put_differences(run, source);
    put_samples(run, source, samples);
    put_parts(run, source);
    if (cJSON_IsArray(kernels) && cJSON_GetArraySize(kernels) > 0)
        compare_put(run, "manifest_kernels", cJSON_Duplicate(kernels, true));
}

void compare_take_run(struct comparison *comparison, cJSON *run,
                      const struct process_result *process)
{
    cJSON *top = tree_of(process->text);
    cJSON *device = compare_device_of(comparison, run);
    const cJSON *tuned = json_at(top, "device.tuned");
    const char *message = json_text(top, "error.message");
    put_run(comparison, run, top, "runs_ns");
    if (cJSON_IsBool(tuned) && json_at(device, "tuning"))
        compare_put(device, "tuned", cJSON_CreateBool(cJSON_IsTrue(tuned)));
    compare_put_number(run, "process_ns", (double)process->nanoseconds);
    compare_put_number(run, "host_memory_peak", (double)process->bytes_peak);
    const char *outcome = outcome_of_end(top, run, process);
    const bool differs = strcmp(outcome, "different") == 0;
    put_outcome(run, outcome, differs ? "" : *message ? message : process->last_line);
    compare_add_figures(run);
    cJSON_Delete(top);
}

/* ---------------------------------------------------------------- saved comparisons */

static void take_saved_run(const struct comparison *comparison, cJSON *run, const cJSON *source)
{
    static const char *const outcomes[] = {"verified", "nothing to verify", "unproven", "different",
                                           "refused",  "crashed",           "timed out"};
    static const char *const codes[] = {"exit_code", "signal"};
    const char *outcome = "failed";
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
        outcome = json_is(source, "outcome", outcomes[i]) ? outcomes[i] : outcome;
    put_run(comparison, run, source, "samples_ns");
    for (size_t i = 0; i < 2; i++)
        if (cJSON_IsNumber(json_at(source, codes[i])))
            compare_put_number(run, codes[i], (uint64_t)compare_number(source, codes[i]) & 0xff);
    put_outcome(run, strcmp(outcome, "verified") == 0 ? outcome_of_claim(run) : outcome,
                json_text(source, "message"));
    compare_put_text(run, "command", json_text(source, "command"));
    if (json_is(run, "outcome", "different") && json_is(source, "fault", "transcript"))
        compare_put_text(run, "fault", "transcript");
    compare_add_figures(run);
}

/* Returns the index here of the saved transcript number `place`; or that of none. */
static size_t find_transcript(const struct comparison *comparison, const cJSON *top, double place)
{
    const cJSON *there =
        place < INT32_MAX ? cJSON_GetArrayItem(json_at(top, "transcripts"), (int)place) : NULL;
    size_t i = 0;
    JSON_EACH(here, comparison->transcripts)
    {
        if (compare_number(here, "bytes") == compare_number(there, "bytes") &&
            json_is(there, "digest", json_text(here, "digest")))
            break;
        i++;
    }
    return i;
}

/* Adds the saved device number `place`, with its runs of transcripts in this comparison. */
static size_t add_saved_device(struct comparison *comparison, const cJSON *top, size_t place,
                               const cJSON *source, const char *path)
{
    cJSON *device = NULL;
    size_t added = 0;
    JSON_EACH(saved, json_at(top, "runs"))
    {
        const size_t transcript =
            find_transcript(comparison, top, compare_number(saved, "transcript_at"));
        if (json_number_at(saved, "device_at") != place ||
            transcript == json_number_at(comparison->top, "transcripts"))
            continue;
        if (!device) {
            cJSON *host = cJSON_CreateObject();
            device = compare_add_device(comparison, source);
            compare_copy(host, json_at(top, "host"), compare_host_columns);
            compare_put_text(device, "baseline", path);
            compare_put_text(device, "date", json_text(top, "date"));
            compare_put(device, "host", host);
        }
        take_saved_run(
            comparison,
            compare_add_run(comparison, transcript, json_number_at(comparison->top, "devices") - 1),
            saved);
        added++;
    }
    return added;
}

enum healcl_status compare_add_baseline(struct comparison *comparison, const char *path,
                                        size_t *added, struct healcl_error *error)
{
    cJSON *top;
    size_t place = 0;
    *added = 0;
    TRY(compare_read_file(path, &top, error));
    if (!cJSON_IsArray(json_at(top, "devices")) || !cJSON_IsArray(json_at(top, "runs"))) {
        cJSON_Delete(top);
        FAIL(error, HEALCL_USAGE, "'%.480s' is not JSON from healcl compare", path);
    }
    JSON_EACH(source, json_at(top, "devices"))
    {
        if (!json_at(source, "baseline")) /* the baselines that it was compared with are ignored */
            *added += add_saved_device(comparison, top, place, source, path);
        place++;
    }
    cJSON_Delete(top);
    return HEALCL_OK;
}
