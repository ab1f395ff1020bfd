/* healcl compile */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <sys/stat.h>
#include <zip.h>

#include "cli/command_job.h"
#include "core/file.h"
#include "opencl/package.h"

extern const char healcl_cli_one_source_awk[], healcl_cli_build_sh[]; /* embedded file */

/* The state of `healcl compile`. */
struct compile_command {
    struct command_job job; /* its file: the current transcript, or NULL */
    const char *output, *emit, *target, *from;
    bool cache;
    glob_t bundled;                  /* cache: the bundled files, if none is named */
    struct package *package;         /* the package being made; cache: what is stored */
    char directory[CACHE_PATH_SIZE]; /* of cached files */
};

/* Runs a transcript and verifies it, to build all programs that it needs. */
static enum healcl_status run_file(struct compile_command *self, const char *file,
                                   struct healcl_error *error)
{
    struct healcl_transcript *transcript = NULL;
    struct healcl_report *report = NULL;
    const struct healcl_run_options options = {.no_warm_up = true, .repeat = 1};
    self->job.file = file;
    progress_say("running %s", file);
    enum healcl_status status =
        healcl_transcript_open(file, &self->job.options, &transcript, error);
    THEN(status, healcl_run(transcript, self->job.device, &options, &report, error));
    if (status == HEALCL_OK && report->verdict == HEALCL_DIFFERS)
        status = ERROR(error, HEALCL_DIFFERENT, "results differ: healcl run shows which");
    healcl_report_free(report);
    healcl_transcript_close(transcript);
    return status;
}

static enum healcl_status open_device(struct compile_command *self, struct healcl_error *error)
{
    progress_say("opening the device");
    /* The package must contain all kernels. */
    const struct healcl_device_options options = {.selector = self->job.selector,
                                                  .no_fallback = true};
    return healcl_device_open_with(&options, &self->job.device, error);
}

static enum healcl_status run_files(struct compile_command *self, struct healcl_error *error)
{
    for (size_t i = 0; i < self->job.file_count; i++)
        TRY(run_file(self, self->job.files[i], error));
    self->job.file = NULL;
    progress_say("getting binaries");
    return HEALCL_OK;
}

static void name_device(cJSON *manifest, const struct device_info *info)
{
    cJSON_DeleteItemFromObject(manifest, "device");
    JSON_ADD(json_add_object(manifest, "device"), STRING("platform", info->platform),
             STRING("name", info->name), STRING("driver", info->driver),
             STRING("version", info->version));
}

/* Runs all transcripts, to build their programs, and begins the manifest. */
static enum healcl_status build_all(struct compile_command *self, struct healcl_error *error)
{
    char tuning[TUNING_TEXT_SIZE];
    TRY(open_device(self, error));
    /* The package must also contain the self-test's programs. */
    TRY(self_test_run(self->job.device, error));
    TRY(run_files(self, error));
    tuning_format(&self->job.device->tuning, tuning);
    cJSON *manifest = self->package->manifest = cJSON_CreateObject();
    JSON_ADD(manifest, STRING("format", "healcl package"), NUMBER("abi", PACKAGE_ABI),
             STRING("healcl", HEALCL_VERSION));
    name_device(manifest, &self->job.device->info);
    JSON_ADD(manifest, STRING("tuning", tuning),
             STRING("choices", self->job.device->programs->choices.text));
    return HEALCL_OK;
}

/* Takes ownership of data. */
static void add_member(struct package *package, const char *name, unsigned char *data, size_t bytes)
{
    package->members =
        xrealloc(package->members, package->member_count + 1, sizeof *package->members);
    struct package_member *member = &package->members[package->member_count++];
    member->data = data;
    member->bytes = bytes;
    snprintf(member->name, sizeof member->name, "%s", name);
}

static void add_binary(struct package *package, const char *key, unsigned char *data, size_t bytes)
{
    add_member(package, xformat("binary_%.*s", HASH_SIZE - 1, key), data, bytes);
}

/* ---------------------------------------------------------------- the zip */

/* head: what precedes the data. Both must stay valid until the zip is closed. */
static bool zip_member(zip_t *zip, const char *name, char *head, unsigned char *data, size_t bytes)
{
    const zip_buffer_fragment_t parts[] = {{(zip_uint8_t *)head, strlen(head)}, {data, bytes}};
    const int first = *head ? 0 : 1; /* libzip crashes on empty parts */
    zip_source_t *source =
        zip_source_buffer_fragment(zip, parts + first, (zip_uint64_t)(2 - first), 0);
    const zip_int64_t index = source ? zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8) : -1;
    if (source && index < 0)
        zip_source_free(source);
    /* Without a date: 1980-01-01 is the first day that a zip can have. */
    return index >= 0 && zip_file_set_dostime(zip, (zip_uint64_t)index, 0, 0x21, 0) == 0;
}

static bool zip_members(zip_t *zip, const struct package *package, char *manifest)
{
    char none[] = "", (*heads)[CACHE_HEAD_SIZE] = xcalloc(package->member_count + 1, sizeof *heads);
    bool good = zip_member(zip, "manifest.json", none, (unsigned char *)manifest, strlen(manifest));
    for (size_t i = 0; good && i < package->member_count; i++) {
        const struct package_member *member = &package->members[i];
        (void)cache_head(member->name, member->data, member->bytes, heads[i]);
        good = zip_member(zip, member->name, heads[i], member->data, member->bytes);
    }
    good = good && zip_close(zip) == 0;
    free(heads);
    return good;
}

/* Takes the bytes that a closed zip has left in its source. */
static unsigned char *take_bytes(zip_source_t *source, size_t *bytes)
{
    zip_stat_t about;
    if (zip_source_stat(source, &about) != 0 || !(about.valid & ZIP_STAT_SIZE) ||
        zip_source_open(source) != 0)
        return NULL;
    *bytes = (size_t)about.size;
    unsigned char *data = malloc(*bytes + 1);
    const zip_int64_t got = data ? zip_source_read(source, data, *bytes) : -1;
    (void)zip_source_close(source);
    if (got >= 0 && (size_t)got == *bytes)
        return data;
    free(data);
    return NULL;
}

/* Writes a package. Errors: HEALCL_USAGE if the stream cannot be written. */
static enum healcl_status package_write(const struct package *package, FILE *stream,
                                        struct healcl_error *error)
{
    size_t bytes = 0;
    unsigned char *data = NULL;
    char *manifest = cJSON_Print(package->manifest);
    zip_source_t *source = zip_source_buffer_create(NULL, 0, 0, NULL);
    zip_t *zip = source ? zip_open_from_source(source, ZIP_TRUNCATE, NULL) : NULL;
    if (zip) {
        zip_source_keep(source);
        if (manifest && zip_members(zip, package, manifest))
            data = take_bytes(source, &bytes);
        else
            zip_discard(zip);
    }
    zip_source_free(source);
    free(manifest);
    NEED_MEMORY(data, error);
    const bool is_written = fwrite(data, 1, bytes, stream) == bytes;
    free(data);
    if (!is_written)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "a package of %zu bytes cannot be written", bytes);
    return HEALCL_OK;
}

/* Keeps a file whose content is already right. A write error is reported with path and reason. */
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

static enum healcl_status write_package(const struct compile_command *self,
                                        struct healcl_error *error)
{
    struct new_file file = {.stream = NULL};
    TRY(new_file_open(&file, self->output, error));
    return end_file(&file, package_write(self->package, file.stream, error), error);
}

/* Adds the binaries of all built programs to the package. With --cache, stores each of them in a
 * separate file, too. Later runs read only those that they need. */
static enum healcl_status take_binaries(struct compile_command *self, struct healcl_error *error)
{
    const struct device_program *program = NULL;
    while ((program = device_next_program(self->job.device, program)) != NULL) {
        unsigned char *binary;
        size_t bytes;
        TRY_PREFIX(binary_get(self->job.device, program->id, &binary, &bytes, error),
                   "program '%s': ", program->name);
        add_binary(self->package, program->key, binary, bytes);
        if (self->cache)
            TRY(cache_write(program->binary_name, binary, bytes, NULL, error));
    }
    return HEALCL_OK;
}

static enum healcl_status pack(struct compile_command *self, struct healcl_error *error)
{
    TRY(build_all(self, error));
    TRY(take_binaries(self, error));
    return write_package(self, error);
}

/* ---------------------------------------------------------------- a folder of sources */

/* Whether all programs become one source. Then all launched kernels are compiled to one image,
 * workload.aocx. Kernel "copy" of program 1 is named p001_copy there. */
static bool is_one_source(const struct compile_command *self)
{
    return strcmp(self->target, "fpga") == 0;
}

/* Writes options such as "-D THIN=1 -w" as lines before a source: "#define THIN 1". The script
 * passes other options to the compiler. */
static void emit_defines(const char *options, FILE *stream)
{
    fprintf(stream, "/* %s */\n", options);
    for (const char *at = options; (at = strstr(at, "-D ")) != NULL;) {
        at += 3;
        const size_t length = strcspn(at, " "), name = strcspn(at, " =");
        fprintf(stream, "#define %.*s %.*s\n", (int)name, at,
                (int)(length > name ? length - name - 1 : 0), at + name + 1);
        at += length;
    }
}

/* Writes program "ntt/rows" as 003_ntt_rows.cl, with a line for build.sh that names the needed
 * kernels. The manifest names 003_ntt_rows.bin for it. If all programs become one image, its
 * kernels begin with p003_. */
static enum healcl_status emit_source(const struct compile_command *self, size_t number,
                                      const struct device_program *program, cJSON *programs,
                                      struct healcl_error *error)
{
    char *name = xformat("%03zu_%.50s", number, program->name);
    struct new_file file;
    for (char *at = name; *at; at++) /* a manifest's program may have any options */
        *at = isalnum((unsigned char)*at) || strchr("_.-", *at) ? *at : '_';
    TRY(new_file_open(&file, xformat("%s/%s.cl", self->emit, name), error));
    emit_defines(program->all_options, file.stream);
    fputs("// kernels:", file.stream);
    for (const struct shared_kernel *kernel = program->kernels; kernel; kernel = kernel->next)
        fprintf(file.stream, " %s", kernel->name);
    fputc('\n', file.stream);
    TRY(end_file(&file, device_write_source(self->job.device, program, file.stream, error), error));
    cJSON_AddStringToObject(programs, program->key,
                            is_one_source(self) ? xformat("p%03zu_", number)
                                                : xformat("%s.bin", name));
    return HEALCL_OK;
}

/* The target is a different device from the one that ran here: --from names it. */
static enum healcl_status emit(struct compile_command *self, struct healcl_error *error)
{
    static const struct device_info none;
    struct new_file file;
    if (mkdir(self->emit, 0777) != 0 && errno != EEXIST)
        FAIL(error, HEALCL_USAGE, "cannot make '%.400s': %s", self->emit, strerror(errno));
    if (setenv("HEALCL_AS", is_one_source(self) ? "accelerator" : "gpu", 0) != 0)
        NO_MEMORY(error);
    TRY(build_all(self, error));
    cJSON *manifest = self->package->manifest;
    size_t number = 0;
    name_device(manifest, &none);
    cJSON *programs = cJSON_AddObjectToObject(manifest, "programs");
    const struct device_program *program = NULL;
    while ((program = device_next_program(self->job.device, program)) != NULL)
        TRY(emit_source(self, number++, program, programs, error));
    if (is_one_source(self)) {
        cJSON_AddStringToObject(manifest, PACKAGE_IMAGE, "workload.aocx");
        TRY(new_file_open(&file, xformat("%s/one_source.awk", self->emit), error));
        fputs(healcl_cli_one_source_awk, file.stream);
        TRY(new_file_commit(&file, error));
    }
    TRY(new_file_open(&file, xformat("%s/build.sh", self->emit), error));
    fprintf(file.stream, "#!/bin/sh\n# Made by healcl compile --emit.\ntarget=%s\n%s", self->target,
            healcl_cli_build_sh);
    TRY(new_file_commit(&file, error));
    TRY(new_file_open(&file, xformat("%s/manifest.json", self->emit), error));
    json_print(manifest, file.stream);
    return new_file_commit(&file, error);
}

static enum healcl_status read_in_folder(const struct compile_command *self, const char *name,
                                         unsigned char **data, size_t *bytes,
                                         struct healcl_error *error)
{
    const uint64_t most = (uint64_t)4 << 30;
    if (strchr(name, '/'))
        REFUSE(error, "folder '%.400s': manifest.json: '%.80s' is not the name of a file",
               self->from, name);
    return file_read(xformat("%s/%s", self->from, name), most, data, bytes, error);
}

static enum healcl_status read_folder(struct compile_command *self, struct healcl_error *error)
{
    unsigned char *data;
    size_t bytes;
    TRY(read_in_folder(self, "manifest.json", &data, &bytes, error));
    enum healcl_status status =
        package_read_manifest(self->package, (const char *)data, bytes, error);
    free(data);
    if (status != HEALCL_OK) {
        error_prefix(error, "folder '%.400s': ", self->from);
        return status;
    }
    cJSON *manifest = self->package->manifest;
    const char *image = cJSON_GetStringValue(cJSON_GetObjectItem(manifest, PACKAGE_IMAGE));
    if (image) {
        TRY(read_in_folder(self, image, &data, &bytes, error));
        add_member(self->package, PACKAGE_IMAGE, data, bytes);
        return HEALCL_OK;
    }
    JSON_EACH(program, cJSON_GetObjectItem(manifest, "programs"))
    {
        TRY(read_in_folder(self, program->valuestring, &data, &bytes, error));
        add_binary(self->package, program->string, data, bytes);
    }
    cJSON_DeleteItemFromObject(manifest, "programs");
    return HEALCL_OK;
}

/* Makes a package from a folder, for a device of this machine. */
static enum healcl_status complete(struct compile_command *self, struct healcl_error *error)
{
    struct device_info *list;
    size_t count, index;
    TRY(read_folder(self, error));
    TRY(device_list(&opencl_loader, true, &list, &count, error));
    enum healcl_status status = device_select(list, count, self->job.selector, &index, error);
    if (status == HEALCL_OK)
        name_device(self->package->manifest, &list[index]);
    free(list);
    TRY(status);
    return write_package(self, error);
}

/* Fills the cache with the programs of the files, or of all bundled transcripts. */
static enum healcl_status keep(struct compile_command *self, struct healcl_error *error)
{
    if (self->job.file_count == 0) {
        TRY(bundled_find(&self->bundled, error));
        self->job.files = self->bundled.gl_pathv;
        self->job.file_count = self->bundled.gl_pathc;
    }
    TRY(open_device(self, error));
    if (!cache_directory(self->directory))
        FAIL(error, HEALCL_USAGE, "there is no folder for programs: set HEALCL_CACHE_DIR to one");
    TRY(run_files(self, error));
    self->job.device->programs->keeps_binaries = false; /* take_binaries stores them */
    return take_binaries(self, error);
}

static enum healcl_status compile(void *context, struct healcl_error *error)
{
    struct compile_command *self = context;
    self->package = xcalloc(1, sizeof *self->package);
    if (self->cache)
        return keep(self, error);
    if (self->from)
        return complete(self, error);
    if (self->emit)
        return emit(self, error);
    return pack(self, error);
}

/* ---------------------------------------------------------------- telling */

static void print_compile(void *context, const cJSON *document, const struct style *style)
{
    const struct compile_command *self = context;
    (void)document;
    (void)style;
    const struct package *package = self->package;
    const int shared = cJSON_GetArraySize(cJSON_GetObjectItem(package->manifest, "programs"));
    const size_t count = shared > 0 ? (size_t)shared : package->member_count;
    uint64_t bytes = 0;
    if (self->emit) {
        printf("%s: sources of %zu programs; build.sh compiles them for %s\n", self->emit, count,
               self->target);
        return;
    }
    for (size_t i = 0; i < package->member_count; i++)
        bytes += package->members[i].bytes;
    printf("%s: %s%zu programs, binaries of %s, for %s with driver %s\n",
           self->cache ? self->directory : self->output, self->cache ? "kept " : "", count,
           TEXT_BYTES(bytes),
           self->cache ? self->job.device->info.name : package_entry(package, "device", "name"),
           self->cache ? self->job.device->info.driver
                       : package_entry(package, "device", "driver"));
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {JOB_DEVICE},
    {"output", 'o', OPTION_NEW_FILE, "PACKAGE", KEPT_IN(struct compile_command, output),
     "the file to write"},
    {"cache", 0, OPTION_FLAG, NULL, KEPT_IN(struct compile_command, cache),
     "store the binaries in HEALCL_CACHE_DIR instead, for later runs with the same device, driver "
     "and sources; without FILE, those of the bundled transcripts"},
    {"emit", 0, OPTION_NEW_FOLDER, "FOLDER", KEPT_IN(struct compile_command, emit),
     "write the programs' sources to FOLDER instead, with a script that compiles them for TARGET; "
     "this machine need not have that device"},
    {"target", 0, OPTION_WORD, "TARGET", KEPT_IN(struct compile_command, target),
     "the target of --emit: gfx90a or another of AMD's, sm_90 or another of NVIDIA's, fpga, spirv, "
     "or a name that Intel's ocloc knows, such as dg2"},
    {"from", 0, OPTION_FOLDER, "FOLDER", KEPT_IN(struct compile_command, from),
     "make a package from what the script of --emit has compiled, for a device of this machine"},
    {EXPAND_OPTION},
    {OPS_OPTION},
    {TRUST_OPTION},
    {TIMEOUT_OPTION(GIVE_UP)},
    {HELP_OPTION},
};

static int prepare(const struct command *command, void *context)
{
    const struct compile_command *self = context;
    if (self->from && self->job.file_count > 0)
        return usage_error(command, "--from reads only its folder: '%s' is not allowed",
                           self->job.files[0]);
    if (self->cache && (self->output || self->emit || self->from || self->target))
        return usage_error(command,
                           "--cache cannot be combined with --output, --emit, --target or --from");
    if (self->cache)
        return GOES_ON;
    if (!self->from && self->job.file_count == 0)
        return usage_error(command, "no FILE is named");
    if (!self->emit != !self->target)
        return usage_error(command, "--emit and --target need each other");
    if (self->emit && (self->output || self->from))
        return usage_error(command, "--emit cannot be combined with --output or --from");
    if (!self->emit && !self->output)
        return usage_error(command, "no PACKAGE is named: --output is missing");
    /* Only build.sh and its compilers know the valid targets. */
    if (self->target &&
        (!*self->target || strlen(self->target) > 32 || *self->target == '-' ||
         self->target[strspn(self->target, "abcdefghijklmnopqrstuvwxyz0123456789_-")]))
        return usage_error(command, "'%s' is not a target such as gfx90a", self->target);
    return GOES_ON;
}

static void release_compile(void *context)
{
    struct compile_command *self = context;
    package_free(self->package);
    globfree(&self->bundled);
}

const struct command command_compile = {
    .name = "compile",
    .summary = "put all programs that transcripts need into a package",
    .help = "Runs transcripts, verifies them, and writes the binaries of all programs that they "
            "needed, with those of the self-test, to one file. With healcl run --package, nothing "
            "is built, and devices need no compiler (docs/PACKAGES.md).",
    .usage = "healcl compile [OPTIONS] --output PACKAGE FILE...\n"
             "       healcl compile [OPTIONS] --cache [FILE...]\n"
             "       healcl compile [OPTIONS] --emit FOLDER --target TARGET FILE...\n"
             "       healcl compile [OPTIONS] --from FOLDER --output PACKAGE",
    .notes = "A package is for this device with this driver, and for this version of healcl. Its "
             "kernels are those that the device's present tuning selects.",
    .options = options,
    .operands = OPERANDS_ANY,
    .device = DEVICE_HERE,
    .size = sizeof(struct compile_command),
    .steps = {.prepare = prepare,
              .work = compile,
              .print = print_compile,
              .release = release_compile},
};
