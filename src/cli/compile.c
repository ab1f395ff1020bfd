/* healcl compile */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/bundled.h"
#include "cli/cli.h"
#include "cli/emit.h"
#include "cli/progress.h"
#include "core/new_file.h"
#include "package/package.h"
#include "programs/opening.h"
#include "programs/programs.h"
#include "programs/self_test.h"
#include "report/text.h"
#include "run/run.h"

/* One `healcl compile`. */
struct compile_command {
    const char *selector, *output, *emit, *target, *from;
    bool cache;
    char **files;
    size_t file_count;
    glob_t bundled; /* cache: the files, where none are named */
    struct kept_binaries kept;
    struct progress progress;
    struct healcl_device *device;
    struct device_info info;
    struct package package, *read; /* what is made; from: what was read */
    char tuning[TUNING_TEXT_SIZE], choices[KERNEL_CHOICES_SIZE];
    struct healcl_limits limits; /* with the operations of --ops */
    const char *file;            /* the transcript that is run now, or NULL */
};

/* Runs a transcript, and verifies it: what it builds is what it needs. */
static enum healcl_status run_file(struct compile_command *self, const char *file,
                                   struct healcl_error *error)
{
    struct healcl_transcript *transcript = NULL;
    struct healcl_report *report = NULL;
    const struct healcl_run_options options = {.no_warm_up = true, .repeat = 1};
    self->file = file;
    progress_say(&self->progress, "running %s", file);
    enum healcl_status status = healcl_transcript_open(file, &self->limits, &transcript, error);
    if (status == HEALCL_OK)
        status = healcl_run(transcript, self->device, &options, &report, error);
    if (status == HEALCL_OK && report->verdict == HEALCL_DIFFERS)
        status = ERROR(error, HEALCL_DIFFERENT, "results differ: healcl run tells which");
    healcl_report_free(report);
    healcl_transcript_close(transcript);
    return status;
}

static enum healcl_status open_device(struct compile_command *self, struct healcl_error *error)
{
    progress_say(&self->progress, "opening the device");
    const struct healcl_device_options options = {.selector = self->selector,
                                                  .no_fallback = true}; /* it is to be in there */
    return healcl_device_open_with(&options, &self->device, error);
}

static enum healcl_status run_files(struct compile_command *self, struct healcl_error *error)
{
    for (size_t i = 0; i < self->file_count; i++)
        TRY(run_file(self, self->files[i], error));
    self->file = NULL;
    progress_say(&self->progress, "getting binaries");
    return HEALCL_OK;
}

/* Runs everything, and notes what was built. */
static enum healcl_status record(struct compile_command *self, enum device_record kind,
                                 struct healcl_error *error)
{
    TRY(open_device(self, error));
    /* Devices prove themselves from a package. */
    TRY(self_test_run(self->device, error));
    TRY(run_files(self, error));
    TRY(device_record(self->device, &self->package, kind, error));
    tuning_format(&self->device->tuning, self->tuning);
    self->package.tuning = self->tuning;
    kernel_choices_format(&self->device->programs->choices, self->choices);
    self->package.choices = self->choices;
    return HEALCL_OK;
}

/* A file that holds what it should is kept; where it could not be written, that is told with its
 * path and the reason. */
static enum healcl_status end_file(struct new_file *file, enum healcl_status status,
                                   struct healcl_error *error)
{
    if (ferror(file->stream)) {
        healcl_error_clear(error);
        status = HEALCL_OK;
    }
    if (status == HEALCL_OK)
        return new_file_commit(file, error);
    new_file_discard(file);
    return status;
}

static enum healcl_status write_package(const struct package *package, const char *path,
                                        struct healcl_error *error)
{
    struct new_file file = {.stream = NULL};
    TRY(new_file_open(&file, path, error));
    return end_file(&file, package_write(package, file.stream, error), error);
}

/* ---------------------------------------------------------------- a folder of sources */

enum emitted { EMIT_SOURCE, EMIT_SCRIPT, EMIT_ONE_SOURCE, EMIT_MANIFEST };

/* A line for build.sh: those kernels that the manifest has. */
static bool write_kernels(const struct package_program *program, FILE *stream)
{
    bool good = fputs("// kernels:", stream) >= 0;
    for (size_t i = 0; i < program->kernel_count; i++)
        good = good && fprintf(stream, " %s", program->kernels[i].name) > 0;
    return good && putc('\n', stream) != EOF;
}

static enum healcl_status write_emitted(const struct compile_command *self, enum emitted what,
                                        const struct package_program *program, FILE *stream,
                                        struct healcl_error *error)
{
    bool good = true;
    char *manifest = NULL;
    switch (what) {
    case EMIT_SOURCE:
        good = emit_defines(program->options, stream) && write_kernels(program, stream);
        TRY(device_write_source(self->device, program->name, stream, error));
        break;
    case EMIT_SCRIPT: good = emit_script(self->target, stream); break;
    case EMIT_ONE_SOURCE: good = emit_one_source(stream); break;
    case EMIT_MANIFEST:
        manifest = package_manifest(&self->package);
        if (!manifest)
            NO_MEMORY(error);
        good = fprintf(stream, "%s\n", manifest) > 0;
        free(manifest);
        break;
    }
    if (!good)
        FAIL(error, HEALCL_USAGE, "cannot write to '%.400s'", self->emit);
    return HEALCL_OK;
}

static enum healcl_status emit_file(const struct compile_command *self, const char *name,
                                    enum emitted what, const struct package_program *program,
                                    struct healcl_error *error)
{
    char path[4096];
    struct new_file file = {.stream = NULL};
    if (snprintf(path, sizeof path, "%s/%s", self->emit, name) >= (int)sizeof path)
        FAIL(error, HEALCL_USAGE, "the path of '%.400s' is too long", self->emit);
    TRY(new_file_open(&file, path, error));
    return end_file(&file, write_emitted(self, what, program, file.stream, error), error);
}

/* Kernels of several programs are in one image: each is called after its program, p001_copy. */
static enum healcl_status name_symbols(struct package_program *program, size_t number,
                                       struct healcl_error *error)
{
    for (size_t i = 0; i < program->kernel_count; i++) {
        const size_t size = strlen(program->kernels[i].name) + 24;
        char *symbol = malloc(size);
        if (!symbol)
            NO_MEMORY(error);
        snprintf(symbol, size, "p%03zu_%s", number, program->kernels[i].name);
        program->kernels[i].symbol = symbol;
    }
    return HEALCL_OK;
}

/* N.cl of each program, "ntt/rows" as 003_ntt_rows.cl; the manifest names N.bin for it. */
static enum healcl_status emit_sources(struct compile_command *self, struct healcl_error *error)
{
    struct package *package = &self->package;
    package->images = calloc(package->program_count + 1, sizeof *package->images);
    if (!package->images)
        NO_MEMORY(error);
    for (size_t i = 0; i < package->program_count; i++) {
        char name[PACKAGE_FILE_SIZE - 4], file[PACKAGE_FILE_SIZE];
        struct package_program *program = &package->programs[i];
        snprintf(name, sizeof name, "%03zu_%s", i, program->name);
        for (char *at = name; *at; at++) /* a manifest's may have any */
            *at = isalnum((unsigned char)*at) || strchr("_.-", *at) ? *at : '_';
        snprintf(file, sizeof file, "%s.cl", name);
        TRY(emit_file(self, file, EMIT_SOURCE, program, error));
        if (emit_is_one_source(self->target)) {
            TRY(name_symbols(program, i, error));
            continue;
        }
        program->image = package->image_count++;
        snprintf(package->images[program->image].file, PACKAGE_FILE_SIZE, "%s.bin", name);
    }
    if (!emit_is_one_source(self->target))
        return HEALCL_OK;
    snprintf(package->images[package->image_count++].file, PACKAGE_FILE_SIZE, "workload.aocx");
    return emit_file(self, "one_source.awk", EMIT_ONE_SOURCE, NULL, error);
}

/* The device is another one than that which ran here: --from names it. */
static enum healcl_status emit(struct compile_command *self, struct healcl_error *error)
{
    struct package *package = &self->package;
    if (setenv("HEALCL_AS", emit_is_one_source(self->target) ? "accelerator" : "gpu", 0) != 0)
        NO_MEMORY(error);
    const bool one_source = emit_is_one_source(self->target);
    TRY(record(self, one_source ? RECORD_LAUNCHED : RECORD_SOURCES, error));
    package->platform = package->device = package->driver = package->version = "";
    if (mkdir(self->emit, 0777) != 0 && errno != EEXIST)
        FAIL(error, HEALCL_USAGE, "cannot make '%.400s': %s", self->emit, strerror(errno));
    TRY(emit_sources(self, error));
    TRY(emit_file(self, "build.sh", EMIT_SCRIPT, NULL, error));
    return emit_file(self, "manifest.json", EMIT_MANIFEST, NULL, error);
}

/* Makes a package of a folder, for a device that is here. */
static enum healcl_status complete(struct compile_command *self, struct healcl_error *error)
{
    struct device_info *list;
    size_t count, index;
    TRY(package_read_folder(self->from, &self->read, error));
    TRY(device_list(&opencl_loader, &list, &count, error));
    device_allow_packaged(list, count);
    enum healcl_status status = device_select(list, count, self->selector, &index, error);
    if (status == HEALCL_OK)
        self->info = list[index];
    free(list);
    TRY(status);
    packaged_name(&self->info, self->read);
    return write_package(self->read, self->output, error);
}

/* Keeps what is built, each program in a file of its own: later runs read those that they need. */
static enum healcl_status keep(struct compile_command *self, struct healcl_error *error)
{
    if (self->file_count == 0) {
        TRY(bundled_find(&self->bundled, error));
        self->files = self->bundled.gl_pathv;
        self->file_count = self->bundled.gl_pathc;
    }
    TRY(open_device(self, error));
    if (!self->device->programs->cache_directory)
        FAIL(error, HEALCL_USAGE,
             "there is no folder to keep programs in: HEALCL_CACHE_DIR may "
             "name one");
    TRY(run_files(self, error));
    return device_keep_binaries(self->device, &self->kept, error);
}

static enum healcl_status compile(struct compile_command *self, struct healcl_error *error)
{
    if (self->cache)
        return keep(self, error);
    if (self->from)
        return complete(self, error);
    if (self->emit)
        return emit(self, error);
    TRY(record(self, RECORD_BINARIES, error));
    return write_package(&self->package, self->output, error);
}

/* ---------------------------------------------------------------- telling */

static void tell_kept(const struct compile_command *self)
{
    const struct device_info *info = &self->device->info;
    printf("%s: kept %zu programs, binaries of %s, for %s with driver %s\n",
           self->device->programs->cache_directory, self->kept.count, TEXT_BYTES(self->kept.bytes),
           info->name, info->driver);
}

static void tell(const struct compile_command *self)
{
    const struct package *package = self->read ? self->read : &self->package;
    size_t kernels = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < package->program_count; i++)
        kernels += package->programs[i].kernel_count;
    for (size_t i = 0; i < package->image_count; i++)
        bytes += package->images[i].bytes;
    if (self->emit)
        printf("%s: sources of %zu programs with %zu kernels; build.sh compiles them for %s\n",
               self->emit, package->program_count, kernels, self->target);
    else
        printf("%s: %zu programs with %zu kernels, binaries of %s, for %s with driver %s\n",
               self->output, package->program_count, kernels, TEXT_BYTES(bytes), package->device,
               package->driver);
}

static void release(struct compile_command *self)
{
    struct package *package = &self->package;
    for (size_t i = 0; i < package->program_count; i++) {
        struct package_program *program = &package->programs[i];
        for (size_t k = 0; k < program->kernel_count; k++)
            if (program->kernels[k].symbol != program->kernels[k].name) /* of name_symbols */
                free((char *)(uintptr_t)program->kernels[k].symbol);
        free(program->kernels);
    }
    for (size_t i = 0; i < package->image_count; i++)
        free(package->images[i].data);
    free(package->programs);
    free(package->images);
    package_free(self->read);
    globfree(&self->bundled);
    warn_of_builds(self->device);
    healcl_device_close(self->device);
}

static int compile_and_tell(struct compile_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    progress_start(&self->progress, true);
    enum healcl_status status = compile(self, &error);
    progress_end(&self->progress);
    int code = EXIT_VERIFIED;
    if (status == HEALCL_OK && self->cache)
        tell_kept(self);
    else if (status == HEALCL_OK)
        tell(self);
    else
        code = print_error(self->file, &error, false);
    healcl_error_clear(&error);
    release(self);
    return finish_output(code);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"device", 'd', OPTION_DEVICE, KEPT_IN(struct compile_command, selector)},
    {"output", 'o', OPTION_NEW_FILE, KEPT_IN(struct compile_command, output)},
    {"cache", 0, OPTION_FLAG, KEPT_IN(struct compile_command, cache)},
    {"emit", 0, OPTION_NEW_FOLDER, KEPT_IN(struct compile_command, emit)},
    {"target", 0, OPTION_WORD, KEPT_IN(struct compile_command, target)},
    {"from", 0, OPTION_FOLDER, KEPT_IN(struct compile_command, from)},
    {"expand", 0, OPTION_WORD, KEPT_IN(struct compile_command, limits.expand), .take = take_expand},
    OPERATIONS_OPTIONS(struct compile_command, limits.operations),
    TIMEOUT_OPTION,
    END_OF_OPTIONS,
};

static int check(const struct command *command, const struct compile_command *self)
{
    if (self->from && self->file_count > 0)
        return usage_error(command, "--from takes all from a folder, not '%s' too", self->files[0]);
    if (self->cache && (self->output || self->emit || self->from || self->target))
        return usage_error(command, "--cache keeps programs: it goes without --output, --emit, "
                                    "--target and --from");
    if (self->cache)
        return GOES_ON;
    if (!self->from && self->file_count == 0)
        return usage_error(command, "no FILE is named");
    if (!self->emit != !self->target)
        return usage_error(command, "--emit and --target come together");
    if (self->emit && (self->output || self->from))
        return usage_error(command, "--emit writes sources: it goes without --output and --from");
    if (!self->emit && !self->output)
        return usage_error(command, "no PACKAGE is named: --output is missing");
    if (self->target && !emit_is_target(self->target))
        return usage_error(command, "'%s' is no target such as gfx90a", self->target);
    return GOES_ON;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct compile_command self = {.selector = NULL};
    int code = take_arguments(command, argc, argv, &self);
    if (code != GOES_ON)
        return code;
    self.files = argv + optind;
    self.file_count = (size_t)(argc - optind);
    code = check(command, &self);
    return code == GOES_ON ? compile_and_tell(&self) : code;
}

const struct command command_compile = {
    .name = "compile",
    .summary = "put all programs that transcripts need into a package",
    .help =
        "Runs transcripts, verifies them, and writes the binaries of all programs that they\n"
        "needed, with those of the self-test, to one file for healcl run --package: that\n"
        "builds nothing, and works on devices without a compiler (docs/PACKAGES.md).\n"
        "\n"
        "Usage: healcl compile [OPTIONS] --output PACKAGE FILE...\n"
        "       healcl compile [OPTIONS] --cache [FILE...]\n"
        "       healcl compile [OPTIONS] --emit FOLDER --target TARGET FILE...\n"
        "       healcl compile [OPTIONS] --from FOLDER --output PACKAGE\n"
        "\n"
        "  -d, --device SEL      the device, as for healcl run\n"
        "  -o, --output PACKAGE  the file to write\n"
        "      --cache           keep the binaries in HEALCL_CACHE_DIR instead: later runs take\n"
        "                        them from there unasked, while device, driver and sources are\n"
        "                        the same, and build what is not there; without FILE those of\n"
        "                        the bundled transcripts\n"
        "      --emit FOLDER     write the programs' sources there instead, shaped for a target\n"
        "                        that need not be here, with a script that compiles them\n"
        "      --target TARGET   with --emit: gfx90a and others of AMD, sm_90 and others of\n"
        "                        NVIDIA, fpga, spirv, or a name that Intel's ocloc knows, as dg2\n"
        "      --from FOLDER     make a package of what that script has compiled, for a device\n"
        "                        that is here\n"
        "      --expand spec|sdk  as for healcl run\n"
        "      --ops DIR         take operations and kernels from the manifests of a folder\n"
        "                        (docs/VENDORS.md); may be given again\n"
        "      --trust DIR       the same where its manifests may name sources elsewhere,\n"
        "                        and any options of compilers\n"
        "      --timeout S       give up after S seconds, with exit code 4\n"
        "  -h, --help            this text\n"
        "\n"
        "A package is for this device with this driver, and for this healcl: its kernels are\n"
        "picked as the device is tuned now.\n",
    .options = options,
    .operands = OPERANDS_ANY,
    .device = DEVICE_HERE,
    .run = run,
};
