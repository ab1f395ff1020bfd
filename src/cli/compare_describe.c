/* What a comparison says of where it was made, and how it is repeated. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "cli/comparison.h"
#include "core/file.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- this machine */

enum { FACT_SIZE = 256 };

/* The value of a line "key : value" of Linux; false: it is another line. */
static bool take_value(const char *line, const char *key, char value[FACT_SIZE])
{
    const size_t length = strlen(key);
    if (strncmp(line, key, length) != 0 || line[length + strspn(line + length, " \t")] != ':')
        return false;
    const char *text = strchr(line, ':') + 1;
    text += strspn(text, " \t");
    snprintf(value, FACT_SIZE, "%.*s", (int)strcspn(text, "\n"), text);
    return true;
}

/* name: "AMD EPYC 9354 32-Core Processor"; model: "family 25, model 17, stepping 1". Both are ""
 * where Linux does not tell. */
static void describe_processor(char name[FACT_SIZE], char model[FACT_SIZE])
{
    static const struct {
        const char *key, *word;
    } facts[] = {{"cpu family", "family"},           {"model", "model"},
                 {"stepping", "stepping"},           {"microcode", "microcode"},
                 {"CPU implementer", "implementer"}, {"CPU part", "part"},
                 {"CPU revision", "revision"}};
    char line[512], value[FACT_SIZE];
    *name = *model = 0;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file) && *line != '\n') { /* of the first processor */
        if (take_value(line, "model name", name))
            continue;
        for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
            const size_t used = strlen(model);
            if (take_value(line, facts[i].key, value))
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
    cJSON *top = cJSON_CreateObject(), *host = cJSON_CreateObject();
    *comparison = (struct comparison){.top = top, .judges = cJSON_CreateArray()};
    if (gmtime_r(&now, &parts))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (uname(&names) == 0)
        snprintf(system, sizeof system, "%s %s %s", names.sysname, names.release, names.machine);
    describe_processor(processor, model);
    compare_copy(host, NULL, &compare_host_columns);
    compare_put_text(host, "system", system);
    compare_put_text(host, "processor", processor);
    compare_put_text(host, "model", model);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    compare_put_number(host, "processors", processors > 0 ? (double)processors : 0);
    compare_put_number(host, "memory", (double)memory_bytes);
    compare_put_text(top, "healcl", healcl_version());
    compare_put_text(top, "commit", healcl_commit());
    compare_put_text(top, "date", date);
    compare_put_text(top, "command", "");
    compare_put_number(top, "repeat", 1);
    compare_put(top, "host", host);
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
    cJSON *transcript = cJSON_CreateObject();
    compare_put_text(transcript, "file", path);
    compare_put_number(transcript, "bytes", (double)bytes);
    compare_put_text(transcript, "digest", digest);
    cJSON_AddItemToArray(comparison->transcripts, transcript);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- command lines */

/* What changes how transcripts run, which devices there are and which is the default. */
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
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        xmalloc_fail();
    write_environment(stream);
    fprintf(stream, "healcl %s", command);
    for (size_t i = 0; i < count; i++) {
        putc(' ', stream);
        text_shell(stream, arguments[i]);
    }
    if (fclose(stream) != 0)
        xmalloc_fail();
    compare_put_text(object, "command", text);
    free(text);
}
