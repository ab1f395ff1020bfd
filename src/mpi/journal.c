#include "mpi/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/array.h"
#include "core/file.h"

static const char suffix[] = ".journal";

enum {
    HASH_LENGTH = HASH_SIZE - 1,
    NAME_AT = 2 * HASH_SIZE,  /* in a line, behind two hashes and a blank each */
    LINE_SIZE = NAME_AT + 512 /* a file's name has at most 255 bytes */
};

/* ---------------------------------------------------------------- reading */

static bool is_hash(const char *text)
{
    return strspn(text, "0123456789abcdef") == HASH_LENGTH && text[HASH_LENGTH] == ' ';
}

/* Of a line without its end. */
static enum healcl_status read_line(struct journal *journal, const char *text,
                                    struct healcl_error *error)
{
    if (!is_hash(text) || !is_hash(text + HASH_SIZE) || !text[NAME_AT])
        return HEALCL_OK;
    if (!ARRAY_GROW(journal->lines, journal->count, &journal->capacity))
        NO_MEMORY(error);
    struct journal_line *line = &journal->lines[journal->count];
    memcpy(line->key, text, HASH_LENGTH);
    memcpy(line->results, text + HASH_SIZE, HASH_LENGTH);
    line->key[HASH_LENGTH] = line->results[HASH_LENGTH] = 0;
    line->name = strdup(text + NAME_AT);
    if (!line->name)
        NO_MEMORY(error);
    journal->count++;
    return HEALCL_OK;
}

static enum healcl_status read_file(struct journal *journal, const char *path,
                                    struct healcl_error *error)
{
    char text[LINE_SIZE];
    int descriptor;
    TRY(file_open_regular(path, &descriptor, error));
    FILE *file = fdopen(descriptor, "r");
    if (!file)
        NO_MEMORY(error);
    enum healcl_status status = HEALCL_OK;
    while (status == HEALCL_OK && fgets(text, sizeof text, file)) {
        const size_t length = strlen(text);
        if (length < NAME_AT || text[length - 1] != '\n')
            continue; /* it was cut */
        text[length - 1] = 0;
        status = read_line(journal, text, error);
    }
    if (status == HEALCL_OK && ferror(file))
        status = ERROR(error, HEALCL_USAGE, PATH_FORMAT ": cannot be read", path);
    fclose(file);
    return status;
}

static int by_name_and_key(const void *a, const void *b)
{
    const struct journal_line *line_a = a, *line_b = b;
    const int order = strcmp(line_a->name, line_b->name);
    return order != 0 ? order : strcmp(line_a->key, line_b->key);
}

static bool is_journal(const char *name)
{
    const size_t length = strlen(name), end = strlen(suffix);
    return length > end && strcmp(name + length - end, suffix) == 0;
}

/* "FOLDER/NAME", freed with free(); NULL without memory. */
static char *path_in(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static enum healcl_status read_all(struct journal *journal, DIR *files, const char *folder,
                                   struct healcl_error *error)
{
    for (struct dirent *entry; (entry = readdir(files)) != NULL;) {
        if (!is_journal(entry->d_name))
            continue;
        char *path = path_in(folder, entry->d_name);
        if (!path)
            NO_MEMORY(error);
        enum healcl_status status = read_file(journal, path, error);
        free(path);
        TRY(status);
    }
    return HEALCL_OK;
}

enum healcl_status journal_read(struct journal *journal, const char *folder,
                                struct healcl_error *error)
{
    DIR *files = opendir(folder);
    if (!files)
        FAIL_FILE(error, PATH_FORMAT ": %s", folder, strerror(errno));
    enum healcl_status status = read_all(journal, files, folder, error);
    closedir(files);
    if (journal->count > 0)
        qsort(journal->lines, journal->count, sizeof *journal->lines, by_name_and_key);
    return status;
}

const char *journal_find(const struct journal *journal, const char *name, const char *key)
{
    struct journal_line wanted = {.name = (char *)(uintptr_t)name};
    if (journal->count == 0)
        return NULL;
    memcpy(wanted.key, key, sizeof wanted.key);
    const struct journal_line *found =
        bsearch(&wanted, journal->lines, journal->count, sizeof *journal->lines, by_name_and_key);
    return found ? found->results : NULL;
}

/* ---------------------------------------------------------------- writing */

/* The next line begins behind one that was cut. */
static bool end_last_line(int file)
{
    struct stat about;
    char last = '\n';
    if (fstat(file, &about) != 0)
        return false;
    if (about.st_size > 0 && pread(file, &last, 1, about.st_size - 1) != 1)
        return false;
    return last == '\n' || write(file, "\n", 1) == 1;
}

enum healcl_status journal_open(struct journal *journal, const char *folder, int rank,
                                struct healcl_error *error)
{
    char name[64];
    snprintf(name, sizeof name, "healcl-mpi-%d%s", rank, suffix);
    *journal = (struct journal){.file = -1};
    char *path = path_in(folder, name);
    if (!path)
        NO_MEMORY(error);
    journal->file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    const bool is_ready = journal->file >= 0 && end_last_line(journal->file);
    const int code = errno;
    free(path);
    errno = code;
    if (!is_ready)
        FAIL_FILE(error, "cannot write " PATH_FORMAT ": %s", folder, strerror(code));
    return HEALCL_OK;
}

enum healcl_status journal_add(struct journal *journal, const char *name, const char *key,
                               const char *results, struct healcl_error *error)
{
    char line[LINE_SIZE];
    const int length = snprintf(line, sizeof line, "%s %s %s\n", key, results, name);
    if (length < 0 || (size_t)length >= sizeof line)
        FAIL(error, HEALCL_USAGE, "the name of a request is too long: '%.200s'", name);
    errno = 0;
    if (write(journal->file, line, (size_t)length) != length)
        FAIL_FILE(error, "cannot write to the journal: %s", strerror(errno ? errno : ENOSPC));
    return HEALCL_OK;
}

void journal_release(struct journal *journal)
{
    for (size_t i = 0; i < journal->count; i++)
        free(journal->lines[i].name);
    free(journal->lines);
    if (journal->file >= 0)
        close(journal->file);
    *journal = (struct journal){.file = -1};
}
