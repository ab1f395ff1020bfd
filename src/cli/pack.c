/* healcl pack */
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/command_job.h"

enum { ALIGNMENT = 64 /* alignment of payloads in their file, as of NumPy's headers */ };

/* The state of `healcl pack`. */
struct pack_command {
    struct command_job job;
    const char *output;
    const char *path, *raw_path; /* paths of the files below */
    struct source source;
    struct arena *arena; /* of payloads */
    struct new_file text, raw;
    size_t copied; /* bytes of the source that were copied to text or replaced */
    uint64_t payloads, offset;
};

/* Makes the name: "digits.json.gz" becomes "digits.packed.json" and "digits.packed.json.bin". The
 * pack of a bundled transcript is written to the current folder. */
static void outputs(void *context, struct words *paths)
{
    struct pack_command *self = context;
    const char *bundled = bundled_folder(), *file = self->job.file;
    if (bundled && strncmp(file, bundled, strlen(bundled)) == 0)
        file = text_base_name(file);
    const char *ending = strstr(text_base_name(file), ".json");
    const size_t stem = ending ? (size_t)(ending - file) : strlen(file);
    self->path = self->output ? self->output : xformat("%.*s.packed.json", (int)stem, file);
    self->raw_path = xformat("%s.bin", self->path);
    if (!self->output)
        words_add(paths, self->path);
    words_add(paths, self->raw_path);
}

static int prepare(const struct command *command, void *context)
{
    const struct pack_command *self = context;
    const char *const paths[] = {self->path, self->raw_path};
    struct stat about;
    for (size_t i = 0; i < 2; i++)
        if (strcmp(paths[i], "-") == 0 || strncmp(paths[i], "/dev/", 5) == 0 ||
            (stat(paths[i], &about) == 0 && !S_ISREG(about.st_mode)))
            return usage_error(command, "cannot write '%.400s': a pack is two files side by side",
                               paths[i]);
    char *clean = xformat("%s", text_base_name(self->raw_path));
    text_clean(clean, true);
    const bool is_utf8 = strcmp(clean, text_base_name(self->raw_path)) == 0;
    return is_utf8 ? GOES_ON
                   : usage_error(command,
                                 "'%.400s' is not UTF-8, as names in transcripts must be: choose "
                                 "another name with --output",
                                 self->raw_path);
}

/* Copies the source up to a place, and continues from another place. */
static void copy_text(struct pack_command *self, size_t to, size_t on)
{
    fwrite(self->source.text + self->copied, 1, to - self->copied, self->text.stream);
    self->copied = on;
}

static enum healcl_status write_payload(struct pack_command *self, const struct payload *payload,
                                        struct healcl_error *error)
{
    static const char zeros[ALIGNMENT];
    char hash[HASH_SIZE];
    const size_t begin = (size_t)(payload->data - self->source.text);
    const uint64_t bytes = payload->data_offset +
                           (uint64_t)layout_elements(&payload->layout) * dtype_size(payload->dtype);
    char *file = xmalloc(bytes);
    enum healcl_status status = payload_read_file(payload, 0, bytes, file, error);
    hash_bytes(file, bytes, hash);
    fwrite(file, 1, bytes, self->raw.stream);
    free(file);
    TRY(status);
    cJSON *name = cJSON_CreateString(text_base_name(self->raw_path));
    char *quoted = cJSON_PrintUnformatted(name);
    copy_text(self, begin - 1, begin + payload->length + 1); /* including the quotes */
    fprintf(self->text.stream,
            "{\"file\":%s,\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"xxh3\":\"%s\"}", quoted,
            self->offset, bytes, hash);
    cJSON_free(quoted);
    cJSON_Delete(name);
    const size_t padding = (size_t)(-bytes % ALIGNMENT);
    fwrite(zeros, 1, padding, self->raw.stream);
    self->offset += bytes + padding;
    self->payloads++;
    source_forget(&self->source, payload->data, payload->length);
    return HEALCL_OK;
}

static enum healcl_status write_entry(struct pack_command *self, const struct entry *entry,
                                      struct healcl_error *error)
{
    const struct argument *out = &entry->out;
    for (const struct payload *payload = NULL;;) {
        const struct payload *next = NULL; /* by position: out may precede arguments */
        for (uint32_t i = 0; i <= entry->argument_count && i <= ENTRY_ARGUMENTS_MAX; i++) {
            const bool is_out = i == entry->argument_count || i == ENTRY_ARGUMENTS_MAX;
            const struct argument *argument = is_out ? out : &entry->arguments[i];
            const struct payload *other = &argument->host.payload;
            if (argument->kind != ARGUMENT_HOST_TENSOR || !argument->host.present || !other->data)
                continue;
            if (other->is_raw)
                REFUSE(error, "its payloads are already raw");
            if ((!payload || other->data > payload->data) && (!next || other->data < next->data))
                next = other;
        }
        if (!next)
            return HEALCL_OK;
        TRY(write_payload(self, next, error));
        payload = next;
    }
}

static enum healcl_status write_entries(struct pack_command *self, struct healcl_error *error)
{
    struct entry_reader *reader;
    const struct entry *entry;
    TRY(entry_reader_open(&self->source, self->arena, &reader, error));
    enum healcl_status status;
    do {
        status = entry_reader_next(reader, &entry, error);
        if (status == HEALCL_OK && entry && entry->kind == ENTRY_OPERATION)
            status = write_entry(self, entry, error);
    } while (status == HEALCL_OK && entry);
    entry_reader_close(reader);
    TRY(status);
    copy_text(self, self->source.length, self->source.length);
    return source_check(&self->source, error);
}

/* The payloads are renamed first, so that a transcript never exists without them. */
static enum healcl_status commit(struct pack_command *self, struct healcl_error *error)
{
    if (fflush(self->text.stream) == 0 && !ferror(self->text.stream) &&
        fsync(fileno(self->text.stream)) == 0)
        TRY(new_file_commit(&self->raw, error));
    return new_file_commit(&self->text, error);
}

static enum healcl_status pack(void *context, struct healcl_error *error)
{
    struct pack_command *self = context;
    self->arena = arena_create();
    NEED_MEMORY(self->arena, error);
    TRY(source_open(&self->source, self->job.file, error));
    TRY(new_file_open(&self->raw, self->raw_path, error));
    TRY(new_file_open(&self->text, self->path, error));
    progress_say("packing %s", self->job.file);
    TRY(source_explain(&self->source, write_entries(self, error), error));
    /* While names are set the folder is locked, so that both files are from the same pack. A file
     * system may not support locks. */
    const int lock =
        open(xformat("%.*s.", (int)(text_base_name(self->path) - self->path), self->path),
             O_RDONLY | O_CLOEXEC);
    if (lock >= 0)
        (void)flock(lock, LOCK_EX);
    const enum healcl_status status = commit(self, error);
    if (lock >= 0)
        close(lock);
    return status;
}

static void print_pack(void *context, const cJSON *document, const struct style *style)
{
    const struct pack_command *self = context;
    (void)document;
    fprintf(style->stream, "%s: %" PRIu64 " payloads, %s in %s\n", self->path, self->payloads,
            TEXT_BYTES(self->offset), text_base_name(self->raw_path));
}

static const struct command_option options[] = {
    {"output", 'o', OPTION_NEW_FILE, "OUT", KEPT_IN(struct pack_command, output),
     "the transcript to write, with OUT.bin beside it; by default digits.packed.json for "
     "digits.json"},
    {HELP_OPTION},
};

static void release_pack(void *context)
{
    struct pack_command *self = context;
    new_file_discard(&self->text);
    new_file_discard(&self->raw);
    arena_free(self->arena);
    source_close(&self->source);
}

const struct command command_pack = {
    .name = "pack",
    .summary = "decode a transcript's payloads once, into a file beside it",
    .help = "Writes a transcript whose payloads are raw bytes in a file beside it, with their "
            "hashes. Reading them needs no decoding, and all commands accept it as any other "
            "transcript. Keep both files in one folder, under these names.",
    .notes = "Exit codes: 0, 2 wrong usage, 3 the transcript is refused, 4 out of memory.",
    .options = options,
    .operands = OPERANDS_FILE,
    .size = sizeof(struct pack_command),
    .steps = {.outputs = outputs,
              .prepare = prepare,
              .work = pack,
              .print = print_pack,
              .release = release_pack},
};
