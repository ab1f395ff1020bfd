#include "transcript/source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/file.h"
#include "core/registry.h"
#include "transcript/unpack.h"

/* A file of at most this many bytes stays mapped. Mapping its pages again takes as long as decoding
 * them, and the system can still reclaim them. */
#define KEPT_BYTES (UINT64_C(1) << 30)

enum { LINKS_MAX = 16 };

/* A transcript's folders, each with a trailing '/': the folder of its path, and if that is a link,
 * those of its targets. Also a file in one of them, whose name is set once it is open. */
struct beside {
    char *folders[LINKS_MAX];
    size_t folder_count;
    char *transcript; /* its path */
    struct stat opened;
    char *name, *path; /* path: of that file */
    struct source file;
};

/* Maps a file. path: for messages. */
static enum healcl_status map_file(struct source *source, int file, const char *path,
                                   struct healcl_error *error)
{
    struct stat about;
    if (fstat(file, &about) != 0)
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT ": %s", path, strerror(errno));
    if (about.st_size == 0)
        return HEALCL_OK;
    if ((uintmax_t)about.st_size > SIZE_MAX)
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT ": %s", path, strerror(EFBIG));

    size_t length = (size_t)about.st_size;
    void *text = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
    if (text == MAP_FAILED && errno == ENOMEM)
        FAIL(error, HEALCL_NO_MEMORY, "its %zu bytes cannot be mapped: %s", length,
             strerror(errno));
    if (text == MAP_FAILED)
        FAIL_FOR(error, HEALCL_USAGE, FILE, PATH_FORMAT ": %s", path, strerror(errno));
    /* Only advice: without it the system still reads the file. */
    (void)madvise(text, length, MADV_SEQUENTIAL);
    mapping_note(text, length, path);
    source->text = text;
    source->length = length;
    source->mapped = true;
    source->file = file;
    source->opened = about;
    return HEALCL_OK;
}

static void source_unmap(struct source *source)
{
    if (source->mapped) {
        mapping_forget(source->text);
        (void)munmap((void *)(uintptr_t)source->text, source->length);
    }
    if (source->is_shared)
        close(source->file);
    *source = (struct source){.beside = source->beside};
}

/* Replaces a packed source by its unpacked content. Does nothing for PACKING_NONE. */
static enum healcl_status unpack_source(struct source *source, const char *path,
                                        struct healcl_error *error)
{
    const enum packing packing = packing_of(source->text, source->length);
    int unpacked = -1;
    if (packing == PACKING_NONE)
        return HEALCL_OK;
    enum healcl_status status = unpack(source->text, source->length, packing, &unpacked, error);
    source_unmap(source);
    TRY(status);
    status = map_file(source, unpacked, path, error);
    close(unpacked);
    return status;
}

/* Maps a file that others can write to. */
static enum healcl_status map_shared(struct source *source, const char *path,
                                     struct healcl_error *error)
{
    int file;
    TRY(file_open_regular(path, &file, error));
    enum healcl_status status = map_file(source, file, path, error);
    source->is_shared = source->mapped;
    if (!source->mapped)
        close(file);
    return status;
}

/* Joins two parts of a path. The caller frees the result with free(). NULL: out of memory. */
static char *source_join_path(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 1;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s%s", folder, name);
    return path;
}

/* Finds the folders of a path, link by link. If there are many links, finds only the first ones.
 * Returns false if memory ran out. */
static bool find_folders(struct beside *beside, const char *path)
{
    char target[PATH_MAX], *at = strdup(path);
    ssize_t length = 1;
    while (at && length > 0 && beside->folder_count < LINKS_MAX) {
        length = readlink(at, target, sizeof target - 1);
        const char *slash = strrchr(at, '/');
        at[slash ? slash + 1 - at : 0] = 0;
        beside->folders[beside->folder_count++] = at;
        target[length > 0 ? length : 0] = 0;
        if (length > 0)
            at = source_join_path(*target == '/' ? "" : at, target);
    }
    const bool are_found = at != NULL;
    if (length > 0) /* the path behind the last link that is followed */
        free(at);
    return are_found;
}

enum healcl_status source_open(struct source *source, const char *path, struct healcl_error *error)
{
    struct beside *beside = calloc(1, sizeof *beside);
    *source = (struct source){.beside = beside};
    NEED_MEMORY(beside, error);
    enum healcl_status status = map_shared(source, path, error);
    beside->opened = source->opened;
    beside->transcript = strdup(path);
    if (status == HEALCL_OK && !(find_folders(beside, path) && beside->transcript))
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    THEN(status, unpack_source(source, path, error));
    if (status != HEALCL_OK)
        source_close(source);
    return status;
}

/* Whether an existing path leads out of all folders by a link. */
static bool leads_out(const struct beside *beside, const char *path)
{
    for (size_t i = 0; i < beside->folder_count; i++)
        if (!file_leads_out(*beside->folders[i] ? beside->folders[i] : ".", path))
            return false;
    return true;
}

/* Opens the file in the first folder that contains it. */
static enum healcl_status map_beside(struct beside *beside, const char *name,
                                     struct healcl_error *error)
{
    for (size_t i = 0; i < beside->folder_count; i++) {
        free(beside->path);
        beside->path = source_join_path(beside->folders[i], name);
        if (beside->path && access(beside->path, F_OK) == 0)
            break;
    }
    NEED_MEMORY(beside->path, error);
    if (leads_out(beside, beside->path))
        REFUSE(error, "'%.80s' is a link that leads out of the transcript's folder", name);
    TRY(map_shared(&beside->file, beside->path, error));
    if (beside->file.mapped) {
        NEED_MEMORY(input_note(beside->transcript, &beside->opened), error);
        NEED_MEMORY(input_note(beside->path, &beside->file.opened), error);
    }
    return HEALCL_OK;
}

enum healcl_status source_open_beside(const struct source *source, const char *name,
                                      const struct source **file, struct healcl_error *error)
{
    struct beside *beside = source->beside;
    if (!beside)
        REFUSE(error, "'%.80s' must be beside the transcript, which is not in a folder", name);
    if (!*name || strchr(name, '/'))
        REFUSE(error, "'%.80s' is not a file in the transcript's own folder", name);
    if (beside->name && strcmp(name, beside->name) != 0)
        REFUSE(error, "payloads are in two files, '%.80s' and '%.80s'", beside->name, name);
    *file = &beside->file;
    if (beside->name)
        return HEALCL_OK;
    TRY(map_beside(beside, name, error));
    beside->name = strdup(name);
    NEED_MEMORY(beside->name, error);
    return HEALCL_OK;
}

const char *source_beside(const struct source *source)
{
    return source->beside && source->beside->name ? source->beside->path : NULL;
}

bool source_hold(const struct source *source, bool is_input)
{
    const struct beside *beside = source ? source->beside : NULL;
    if (beside && is_input)
        return input_note(beside->transcript, &beside->opened);
    if (beside)
        input_forget(&beside->opened);
    return true;
}

enum healcl_status source_open_memory(struct source *source, const void *data, size_t length,
                                      struct healcl_error *error)
{
    *source = (struct source){.text = data, .length = length};
    return unpack_source(source, "(memory)", error);
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static enum healcl_status check_file(const struct source *source, bool whole,
                                     struct healcl_error *error)
{
    const struct stat *before = &source->opened;
    struct stat now;
    if (!source->is_shared || fstat(source->file, &now) != 0 ||
        (!whole && now.st_size >= before->st_size))
        return HEALCL_OK;
    if (now.st_size != before->st_size)
        REFUSE_FOR(error, FILE, "the file changed while it was read: it has %lld bytes, not %lld",
                   (long long)now.st_size, (long long)before->st_size);
    /* The modification time can be set back. The change time cannot, but new names for the file
     * change it too. */
    if (!same_time(now.st_mtim, before->st_mtim) ||
        (!same_time(now.st_ctim, before->st_ctim) && now.st_nlink == before->st_nlink))
        REFUSE_FOR(error, FILE, "the file changed while it was read: it has been written to");
    return HEALCL_OK;
}

static enum healcl_status check_files(const struct source *source, bool whole,
                                      struct healcl_error *error)
{
    TRY(check_file(source, whole, error));
    if (source->beside && source->beside->name)
        TRY_PREFIX(check_file(&source->beside->file, whole, error),
                   "'%.80s': ", source->beside->name);
    return HEALCL_OK;
}

enum healcl_status source_check(const struct source *source, struct healcl_error *error)
{
    return check_files(source, true, error);
}

enum healcl_status source_check_size(const struct source *source, struct healcl_error *error)
{
    return check_files(source, false, error);
}

enum healcl_status source_explain(const struct source *source, enum healcl_status status,
                                  struct healcl_error *error)
{
    if (status != HEALCL_REFUSED && status != HEALCL_DIFFERENT)
        return status;
    return source_check(source, error) == HEALCL_OK ? status : HEALCL_REFUSED;
}

void source_close(struct source *source)
{
    source_unmap(source);
    struct beside *beside = source->beside;
    if (beside) {
        if (beside->file.mapped) {
            input_forget(&beside->opened);
            input_forget(&beside->file.opened);
        }
        source_unmap(&beside->file);
        free(beside->transcript);
        for (size_t i = 0; i < beside->folder_count; i++)
            free(beside->folders[i]);
        free(beside->name);
        free(beside->path);
        free(beside);
    }
    source->beside = NULL;
}

void source_forget(const struct source *source, const char *begin, size_t length)
{
    const struct source *beside = source->beside ? &source->beside->file : NULL;
    if (beside && beside->mapped && begin >= beside->text && begin < beside->text + beside->length)
        source = beside;
    /* In memory that is not a mapped file, the pages would come back as zeros. */
    if (!source->mapped || source->length <= KEPT_BYTES)
        return;
    long page_size = sysconf(_SC_PAGESIZE);
    if (page_size <= 0)
        return;
    uintptr_t page = (uintptr_t)page_size;
    uintptr_t first = (uintptr_t)begin;
    uintptr_t end = first + length;
    /* The last page of the mapping is dropped too, although the file may end within it. */
    uintptr_t file_end = (uintptr_t)source->text + source->length;
    end = end == file_end ? end : end / page * page;
    first = (first + page - 1) / page * page;
    if (first < end)
        (void)madvise((void *)first, end - first, MADV_DONTNEED);
}
