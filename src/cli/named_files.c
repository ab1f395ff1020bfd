#include "cli/named_files.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool named_file_take(const struct command_option *option, const char *text, struct named_file *file)
{
    *file = (struct named_file){.option = option, .path = text};
    if (!option)
        return true;
    switch (option->kind) {
    case OPTION_INPUT: file->path = strchr(text, '=') + 1; return true;
    case OPTION_REPORT:
    case OPTION_NEW_FILE:
    case OPTION_NEW_FOLDER: file->is_written = true; return true;
    case OPTION_FILE:
    case OPTION_FOLDER: return true;
    default: return false;
    }
}

static bool is_stdout(const struct named_file *file)
{
    return !file->path ||
           (file->option && file->option->kind == OPTION_REPORT && strcmp(file->path, "-") == 0);
}

static struct place place_of(const struct stat *about)
{
    return (struct place){about->st_dev, about->st_ino};
}

static void find_folders(struct named_file *file)
{
    struct stat about;
    char folder[PATH_MAX];
    file->resolved = realpath(file->path, NULL);
    const char *path = file->resolved ? file->resolved : file->path;
    const char *slash = strrchr(path, '/');
    const int length = slash ? (int)(slash - path) + 1 : 0;
    file->name = path + length;
    if (snprintf(folder, sizeof folder, "%.*s.", length, path) < (int)sizeof folder &&
        stat(folder, &about) == 0)
        file->folder = place_of(&about);
    if (snprintf(folder, sizeof folder, "%.*s..", length, path) < (int)sizeof folder &&
        stat(folder, &about) == 0)
        file->above = place_of(&about);
}

static void find(struct named_file *file)
{
    struct stat about;
    const bool has_name = !is_stdout(file);
    if ((has_name ? stat(file->path, &about) : fstat(STDOUT_FILENO, &about)) == 0) {
        file->type = about.st_mode & S_IFMT;
        file->own = place_of(&about);
    }
    if (has_name)
        find_folders(file);
}

static bool is_place(const struct place *a, const struct place *b)
{
    return a->inode == b->inode && a->device == b->device && a->inode != 0;
}

static bool is_same(const struct named_file *a, const struct named_file *b)
{
    if (is_stdout(a) && is_stdout(b))
        return true;
    if (a->type == S_IFREG || a->type == S_IFDIR)
        return a->type == b->type && is_place(&a->own, &b->own);
    /* Of two that are not there yet. */
    return a->type == 0 && b->type == 0 && a->name && b->name && strcmp(a->name, b->name) == 0 &&
           is_place(&a->folder, &b->folder);
}

static bool has_name_of(const struct named_file *file, const char *const *patterns)
{
    for (; *patterns; patterns++)
        if (fnmatch(*patterns, file->name, 0) == 0)
            return true;
    return false;
}

/* Whether a file is one of those that commands read from such a folder, or write there. */
static bool is_of_folder(const struct named_file *file, const struct named_file *folder)
{
    static const char *const read[] = {"*.json", "*.cl",     "*.so",    "*.npy",    "*.bin",
                                       "*.aocx", "binary_*", "rates_*", "tuning_*", NULL};
    static const char *const written[] = {"entry_*.npy", "results.json", "manifest.json", NULL};
    if (folder->type != S_IFDIR || !file->name)
        return false;
    if (folder->is_written)
        return is_place(&file->folder, &folder->own) && has_name_of(file, written);
    if (is_place(&file->above, &folder->own) && file->resolved)
        return fnmatch("*/examples/*.json", file->resolved, 0) == 0;
    return file->type == S_IFREG && is_place(&file->folder, &folder->own) &&
           has_name_of(file, read);
}

static const char *name_of(const struct named_file *file, char name[64])
{
    snprintf(name, 64, "%s%s", file->option ? "--" : "",
             file->option ? file->option->name : "standard output");
    return name;
}

/* Whether a report goes to standard output, in words that say so. */
static bool is_for_stdout(const struct named_file *file)
{
    return is_stdout(file) || strncmp(file->path, "/dev/", 5) == 0 ||
           strncmp(file->path, "/proc/", 6) == 0;
}

/* written is written; other comes behind it, or is read. */
static int check_pair(const struct command *command, const struct named_file *written,
                      const struct named_file *other)
{
    char name[64], other_name[64];
    if (!written->path && other->is_written && is_for_stdout(other))
        return GOES_ON;
    if (!is_same(written, other) && !is_of_folder(written, other) && !is_of_folder(other, written))
        return GOES_ON;
    const struct named_file *file =
        written->type == S_IFDIR || is_stdout(written) ? other : written;
    if (!other->is_written)
        return usage_error(command, "%s writes over the input '%.400s'", name_of(written, name),
                           file->path);
    if (is_stdout(written) && is_stdout(other))
        return usage_error(command, "only one report can go to standard output");
    return usage_error(command, "%s and %s both write '%.400s'", name_of(written, name),
                       name_of(other, other_name), file->path);
}

int named_files_check(const struct command *command, struct named_file *files, size_t count)
{
    int code = GOES_ON;
    for (size_t i = 0; i < count; i++)
        find(&files[i]);
    for (size_t i = 0; i < count && code == GOES_ON; i++)
        for (size_t j = 0; files[i].is_written && j < count && code == GOES_ON; j++)
            if (!files[j].is_written || (j > i && files[i].option != files[j].option))
                code = check_pair(command, &files[i], &files[j]);
    for (size_t i = 0; i < count; i++)
        free(files[i].resolved);
    return code;
}
