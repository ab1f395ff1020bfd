#include "compare/describe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/file.h"
#include "report/text.h"

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

static void describe_governor(char governor[FACT_SIZE])
{
    *governor = 0;
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "re");
    if (file && fgets(governor, FACT_SIZE, file))
        governor[strcspn(governor, "\n")] = 0;
    if (file)
        fclose(file);
}

/* In hundredths; 0 where it is unknown. */
static uint64_t load_now(void)
{
    double load;
    return getloadavg(&load, 1) == 1 ? (uint64_t)(100 * load + 0.5) : 0;
}

void compare_describe_end(struct comparison *comparison)
{
    comparison->origin.load_after = load_now();
}

void compare_describe_host(struct comparison *comparison, uint64_t memory_bytes)
{
    struct compare_origin *origin = &comparison->origin;
    char date[32] = "", system[256] = "", processor[FACT_SIZE], model[FACT_SIZE],
         governor[FACT_SIZE];
    time_t now = time(NULL);
    struct tm parts;
    struct utsname names;
    if (gmtime_r(&now, &parts))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (uname(&names) == 0)
        snprintf(system, sizeof system, "%s %s %s", names.sysname, names.release, names.machine);
    describe_processor(processor, model);
    describe_governor(governor);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    origin->processors = processors > 0 ? (uint64_t)processors : 0;
    origin->memory_bytes = memory_bytes;
    origin->load_before = origin->load_after = load_now();
    origin->healcl = comparison_keep(comparison, healcl_version());
    origin->commit = comparison_keep(comparison, healcl_commit());
    origin->model = comparison_keep(comparison, model);
    origin->governor = comparison_keep(comparison, governor);
    origin->date = comparison_keep(comparison, date);
    origin->system = comparison_keep(comparison, system);
    origin->processor = comparison_keep(comparison, processor);
}

/* ---------------------------------------------------------------- files */

static enum healcl_status digest_file(FILE *file, struct compare_transcript *transcript,
                                      struct healcl_error *error)
{
    enum { BLOCK = 1 << 16 };
    XXH64_state_t *state = XXH64_createState();
    char *block = malloc(BLOCK);
    enum healcl_status status = HEALCL_OK;
    if (!state || !block) {
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    } else {
        XXH64_reset(state, 0);
        for (size_t got; (got = fread(block, 1, BLOCK, file)) > 0; transcript->bytes += got)
            XXH64_update(state, block, got);
        snprintf(transcript->digest, sizeof transcript->digest, "%016" PRIx64,
                 (uint64_t)XXH64_digest(state));
    }
    free(block);
    XXH64_freeState(state);
    return status;
}

enum healcl_status compare_describe_file(struct comparison *comparison, const char *path,
                                         struct compare_transcript *transcript,
                                         struct healcl_error *error)
{
    transcript->file = comparison_keep(comparison, path);
    int descriptor;
    TRY(file_open_regular(path, &descriptor, error));
    FILE *file = fdopen(descriptor, "r");
    if (!file) {
        close(descriptor);
        NO_MEMORY(error);
    }
    enum healcl_status status = digest_file(file, transcript, error);
    if (status == HEALCL_OK && ferror(file))
        status = ERROR(error, HEALCL_USAGE, "cannot read " PATH_FORMAT, path);
    fclose(file);
    return status;
}

/* ---------------------------------------------------------------- command lines */

size_t compare_home_length(const char *text)
{
    const char *home = getenv("HOME");
    size_t length = home ? strlen(home) : 0;
    while (length > 0 && home[length - 1] == '/')
        length--;
    return length > 0 && strncmp(text, home, length) == 0 && text[length] == '/' ? length : 0;
}

/*
 * A word for a shell, without the home folder's name: it is nobody's business, and another's is
 * elsewhere. A shell knows '~' where a word begins and, in an assignment, behind a colon; elsewhere
 * "$HOME" stands for it.
 */
static void write_word(FILE *stream, const char *word, bool assignment)
{
    const char *begin = word, *next = word;
    if (!*word)
        fputs("''", stream);
    while (*next) {
        bool path = next == word || next[-1] == ':' || next[-1] == '=';
        size_t home = path ? compare_home_length(next) : 0;
        if (home == 0) {
            next++;
            continue;
        }
        bool behind_colon = assignment && next > word && next[-1] == ':'; /* not a quoted one */
        text_shell_part(stream, begin, (size_t)(next - begin) - behind_colon);
        fputs(behind_colon ? ":~/" : next == word ? "~/" : "\"$HOME\"/", stream);
        next += home + 1;
        begin = next;
    }
    text_shell_part(stream, begin, (size_t)(next - begin));
}

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
    const char *blank = "";
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (!value || !*value)
            continue;
        fprintf(stream, "%s%s=", blank, variables[i]);
        write_word(stream, value, true);
        blank = " ";
    }
}

static void write_command(FILE *stream, const char *environment, const char *const *arguments,
                          size_t count)
{
    fprintf(stream, "%s%shealcl", environment, *environment ? " " : "");
    for (size_t i = 0; i < count; i++) {
        putc(' ', stream);
        write_word(stream, arguments[i], false);
    }
}

/* The settings, or with arguments a command line. */
static const char *keep_written(struct comparison *comparison, const char *const *arguments,
                                size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (stream && arguments)
        write_command(stream, comparison->environment, arguments, count);
    else if (stream)
        write_environment(stream);
    bool written = stream && fclose(stream) == 0;
    const char *kept = written ? comparison_keep(comparison, text) : "";
    comparison->no_memory |= !written;
    free(text);
    return kept;
}

void compare_describe_environment(struct comparison *comparison)
{
    comparison->environment = keep_written(comparison, NULL, 0);
}

const char *compare_command_line(struct comparison *comparison, const char *const *arguments,
                                 size_t count)
{
    return keep_written(comparison, arguments, count);
}
