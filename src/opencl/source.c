/* Sources of programs: their texts, options, and what identifies them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "opencl/internal.h"

/* The files of cl/, embedded by the build. */
extern const char healcl_cl_base_base_h[], healcl_cl_base_arithmetic_h[];
#define PROGRAM(variable, name) extern const char healcl_cl_##variable[];
#include "opencl/programs.def"
#undef PROGRAM

static const struct {
    const char *name, *text;
} embedded[] = {
#define PROGRAM(variable, name) {name, healcl_cl_##variable},
#include "opencl/programs.def"
#undef PROGRAM
};

/* The text of a program by its name, or NULL. Programs that tests have added hide those of cl/. */
static const char *find_source(const struct healcl_device *device, const char *name)
{
    const struct program_source *source = device->programs->added;
    for (; source && source->name; source++)
        if (strcmp(source->name, name) == 0)
            return source->text;
    for (size_t i = 0; i < sizeof embedded / sizeof *embedded; i++)
        if (strcmp(embedded[i].name, name) == 0)
            return embedded[i].text;
    return NULL;
}

/* Part of every key: to be raised when the same sources and options yield a different binary. */
#define PROGRAM_ABI "healcl binary 3"

/* Collects the texts that the compiler gets, in order: base.h, arithmetic.h, the program. A #line
 * before each makes the compiler's messages name our files. */
enum healcl_status program_texts_find(const struct healcl_device *device,
                                      const struct device_program *program,
                                      struct program_texts *found, struct healcl_error *error)
{
    const char *name = program->name, *source = program->text;
    if (source) /* a vendor's program, named by its file and a hash: "scale.cl@12ab" */
        snprintf(found->line, sizeof found->line, "\n#line 1 \"%.*s\"\n", (int)strcspn(name, "@"),
                 name);
    else
        snprintf(found->line, sizeof found->line, "\n#line 1 \"cl/%s.cl\"\n", name);
    if (!source)
        source = find_source(device, name);
    if (!source)
        FAIL(error, HEALCL_DEVICE, "there is no program '%s'", name);
    const char *const texts[PROGRAM_TEXTS] = {"#line 1 \"cl/base/base.h\"\n",
                                              healcl_cl_base_base_h,
                                              "\n#line 1 \"cl/base/arithmetic.h\"\n",
                                              healcl_cl_base_arithmetic_h,
                                              found->line,
                                              source};
    memcpy(found->texts, texts, sizeof texts);
    return HEALCL_OK;
}

/* Writes the source that a program is built from to a stream, for users who debug a compiler. */
enum healcl_status device_write_source(const struct healcl_device *device,
                                       const struct device_program *program, FILE *stream,
                                       struct healcl_error *error)
{
    struct program_texts found;
    TRY(program_texts_find(device, program, &found, error));
    for (size_t i = 0; i < PROGRAM_TEXTS; i++)
        if (fputs(found.texts[i], stream) < 0)
            FAIL(error, HEALCL_USAGE, "the source of program '%s' cannot be written",
                 program->name);
    return HEALCL_OK;
}

/* Sets all_options of a program: everything that the compiler gets beside the texts. They depend on
 * the findings of the self-test, on the size of work-groups, and on the launch. */
static void set_options(const struct healcl_device *device, struct device_program *program)
{
    const uint32_t limit = device->info.compiler_limit;
    /* Silences warnings about our own sources, as PoCL prints for wide vectors. Vendors need the
     * warnings about theirs. */
    const char *warnings = program->text ? "" : "-w ";
    const char *optimizing = limit == COMPILER_NOT_OPTIMIZING ? "-cl-opt-disable " : "";
    const char *hints = limit == COMPILER_NO_LIMIT ? "" : " -D NO_HINTS";
    /* Other code for bugs of its compiler (docs/DRIVERS.md). */
    const char *emulation =
        device_emulates_gpu(&device->info) ? " -D COPY_SPACE -D WIDEN_BY_SHIFT" : "";
    snprintf(program->all_options, sizeof program->all_options, "%s%s-D LOCAL_SIZE=%zu%s%s %s",
             warnings, optimizing, program->local_size, hints, emulation, program->options);
}

/* Computes a program's options, its key, and the name of its cached binary. The key is a hash of
 * all that decides what the compiler makes. A package is for one device, so that its names contain
 * only the key. */
enum healcl_status program_identify(const struct healcl_device *device,
                                    struct device_program *program, struct healcl_error *error)
{
    char arguments[24];
    struct program_texts found;
    set_options(device, program);
    TRY(program_texts_find(device, program, &found, error));
    enum { FIELDS = 3 }; /* in front of the texts */
    const char *all[FIELDS + PROGRAM_TEXTS] = {PROGRAM_ABI, program->all_options, arguments};
    snprintf(arguments, sizeof arguments, "%" PRIx64, program->arguments);
    memcpy(all + FIELDS, found.texts, sizeof found.texts);
    hash_texts(FIELDS + PROGRAM_TEXTS, all, program->key);
    if (device->programs->package)
        snprintf(program->binary_name, CACHE_NAME_SIZE, "binary_%s", program->key);
    else if (!device->programs->distrusted)
        cache_name(&device->info, "binary", 1, (const char *const[]){program->key},
                   program->binary_name);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- of launches */

/* A hash of a vendor's kernel name and of its arguments' kinds: memory with elements of some size,
 * or an integer. Arguments are checked when the source is built, so a binary is valid only for the
 * arguments that were checked. 0 for our own kernels. */
uint64_t kernel_arguments_hash(const struct launch *launch)
{
    unsigned char sizes[LAUNCH_ARGUMENTS_MAX]; /* of memory; 0 for an integer */
    if (!launch->source)
        return 0;
    for (uint32_t i = 0; i < launch->argument_count; i++)
        sizes[i] = launch->arguments[i].buffer ? (unsigned char)launch->arguments[i].size : 0;
    return XXH3_64bits_withSeed(launch->kernel, strlen(launch->kernel),
                                XXH3_64bits(sizes, launch->argument_count));
}

/* Identifies the program of a launch: its name, options, size of work-groups, and arguments.
 * Handles look programs up by this hash. */
uint64_t launch_program_hash(const struct launch *launch)
{
    uint64_t seed = XXH3_64bits_withSeed(launch->program, strlen(launch->program),
                                         launch->local_size ^ kernel_arguments_hash(launch));
    return XXH3_64bits_withSeed(launch->options, strlen(launch->options), seed);
}

/* Identifies the kernel of a launch: its program and its name. */
uint64_t launch_kernel_hash(const struct launch *launch)
{
    return XXH3_64bits_withSeed(launch->kernel, strlen(launch->kernel),
                                launch_program_hash(launch));
}
