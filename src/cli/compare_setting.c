#include "cli/compare_setting.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "cli/cli.h"
#include "core/arena.h"
#include "report/text.h"

/* ---------------------------------------------------------------- this machine */

/* "AMD EPYC", or "" where Linux does not tell. */
static void processor_name(char *name, size_t size)
{
    char line[512];
    *name = 0;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && !*name && fgets(line, sizeof line, file)) {
        const char *value = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (value)
            snprintf(name, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
    }
    if (file)
        fclose(file);
}

enum healcl_status compare_describe_host(struct comparison *comparison, struct healcl_error *error)
{
    struct compare_origin *origin = &comparison->origin;
    char date[32] = "", system[256] = "", processor[256];
    time_t now = time(NULL);
    struct tm parts;
    struct utsname names;
    if (gmtime_r(&now, &parts))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (uname(&names) == 0)
        snprintf(system, sizeof system, "%s %s %s", names.sysname, names.release, names.machine);
    processor_name(processor, sizeof processor);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    origin->processors = processors > 0 ? (uint64_t)processors : 0;
    origin->memory_bytes = host_memory();
    TRY(comparison_keep(comparison, healcl_version(), &origin->healcl, error));
    TRY(comparison_keep(comparison, date, &origin->date, error));
    TRY(comparison_keep(comparison, system, &origin->system, error));
    return comparison_keep(comparison, processor, &origin->processor, error);
}

/* ---------------------------------------------------------------- files */

MUST_CHECK static enum healcl_status digest_file(FILE *file, struct compare_transcript *transcript,
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
    TRY(comparison_keep(comparison, path, &transcript->file, error));
    FILE *file = fopen(path, "re");
    if (!file)
        FAIL(error, HEALCL_USAGE, "cannot read '%.480s': %s", path, strerror(errno));
    enum healcl_status status = digest_file(file, transcript, error);
    if (status == HEALCL_OK && ferror(file))
        status = ERROR(error, HEALCL_USAGE, "cannot read '%.480s'", path);
    fclose(file);
    return status;
}

/* ---------------------------------------------------------------- command lines */

static void write_quoted(FILE *stream, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=.,:/@%";
    if (*word && word[strspn(word, plain)] == 0) {
        fputs(word, stream);
        return;
    }
    putc('\'', stream);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", stream);
        else
            putc(*word, stream);
    putc('\'', stream);
}

static void write_command(FILE *stream, const char *const *arguments, size_t count)
{
    /* What changes how transcripts run, which devices there are and which is the default. */
    static const char *const variables[] = {
        "HEALCL_DEVICE",   "HEALCL_TUNING",          "HEALCL_VARIANT",    "HEALCL_CHUNK_BYTES",
        "LD_LIBRARY_PATH", "OCL_ICD_VENDORS",        "OCL_ICD_FILENAMES", "OPENCL_LAYERS",
        "RUSTICL_ENABLE",  "LP_NUM_THREADS",         "OMP_NUM_THREADS",   "OCLGRIND_BUILD_OPTIONS",
        "POCL_DEVICES",    "POCL_MAX_PTHREAD_COUNT",
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (!value || !*value)
            continue;
        fprintf(stream, "%s=", variables[i]);
        write_quoted(stream, value);
        putc(' ', stream);
    }
    fputs("healcl", stream);
    for (size_t i = 0; i < count; i++) {
        putc(' ', stream);
        write_quoted(stream, arguments[i]);
    }
}

enum healcl_status compare_command_line(struct comparison *comparison, const char *const *arguments,
                                        size_t count, const char **line, struct healcl_error *error)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        NO_MEMORY(error);
    write_command(stream, arguments, count);
    bool written = fclose(stream) == 0 && text;
    enum healcl_status status = written ? comparison_keep(comparison, text, line, error)
                                        : ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    free(text);
    return status;
}
