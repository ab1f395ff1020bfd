#include "core/draft.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/registry.h"

#define TEMPORARY_MARK ".tmp-"

enum {
    MARK_SIZE = 48, /* of ".tmp-PID-TRY" */
    TRIES = 100,
    DESCRIPTOR_PATH_SIZE = 40,
    COPY_BYTES = 1 << 16,
};

/* "." for a path without one. Freed with free(); NULL without memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = strdup(slash ? path : ".");
    if (folder && slash)
        folder[slash == path ? 1 : slash - path] = 0;
    return folder;
}

/* ---------------------------------------------------------------- what others have left */

enum { LEFT_SECONDS = 600 };

/* The last folder that had nothing of that kind: a dump writes thousands of files into one. */
static struct {
    pthread_mutex_t lock;
    bool is_known;
    dev_t device;
    ino_t inode;
} clean_folder = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_known_clean(const struct stat *folder)
{
    pthread_mutex_lock(&clean_folder.lock);
    bool is_known = clean_folder.is_known && clean_folder.device == folder->st_dev &&
                    clean_folder.inode == folder->st_ino;
    pthread_mutex_unlock(&clean_folder.lock);
    return is_known;
}

static void note_clean(const struct stat *folder)
{
    pthread_mutex_lock(&clean_folder.lock);
    clean_folder.is_known = true;
    clean_folder.device = folder->st_dev;
    clean_folder.inode = folder->st_ino;
    pthread_mutex_unlock(&clean_folder.lock);
}

/* The process of a name's end, ".tmp-PID-TRY"; 0 where it has no such end. */
static long process_of(const char *end)
{
    static const char digits[] = "0123456789";
    if (strncmp(end, TEMPORARY_MARK, strlen(TEMPORARY_MARK)) != 0)
        return 0;
    end += strlen(TEMPORARY_MARK);
    size_t first = strspn(end, digits);
    if (first == 0 || first > 9 || end[first] != '-')
        return 0;
    size_t second = strspn(end + first + 1, digits);
    return second > 0 && end[first + 1 + second] == 0 ? strtol(end, NULL, 10) : 0;
}

/*
 * Removes a file unless somebody may still write it. There must be no process of its number, nobody
 * must hold its lock, and it must not be young: processes of other hosts, and of containers with
 * numbers of their own, look as if they were gone, but hold the lock; where locks do not reach
 * beyond a host, and for the moment before a file is locked, age is what is left to go by.
 */
static void remove_left(int folder, const char *name, long process)
{
    struct stat about;
    if (kill((pid_t)process, 0) == 0 || errno != ESRCH)
        return;
    int file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return;
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
        time(NULL) - about.st_mtime > LEFT_SECONDS && flock(file, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(folder, name, 0);
    close(file);
}

/* Removes what processes that are gone have left of a file. */
static void remove_all_left(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = folder_of(path);
    DIR *files = folder ? opendir(folder) : NULL;
    struct stat about;
    bool is_clean = files && fstat(dirfd(files), &about) == 0;
    if (is_clean && is_known_clean(&about)) {
        closedir(files);
        files = NULL;
    }
    for (struct dirent *entry; files && (entry = readdir(files)) != NULL;) {
        const char *mark = strstr(entry->d_name, TEMPORARY_MARK);
        is_clean = is_clean && !mark;
        size_t length = strlen(name);
        long process = mark && strncmp(entry->d_name, name, length) == 0
                           ? process_of(entry->d_name + length)
                           : 0;
        if (process > 0)
            remove_left(dirfd(files), entry->d_name, process);
    }
    if (files && is_clean)
        note_clean(&about);
    if (files)
        closedir(files);
    free(folder);
}

/* ---------------------------------------------------------------- files without a name */

/* By which a file without a name can be linked. */
static void descriptor_path(int descriptor, char path[DESCRIPTOR_PATH_SIZE])
{
    snprintf(path, DESCRIPTOR_PATH_SIZE, "/proc/self/fd/%d", descriptor);
}

int nameless_create(const char *path, mode_t mode)
{
#ifdef O_TMPFILE
    char *folder = folder_of(path);
    int file = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode) : -1;
    free(folder);
    return file;
#else
    (void)path;
    (void)mode;
    return -1;
#endif
}

/* One that can get a name. */
static int create_linkable(const char *path, mode_t mode)
{
    char link_path[DESCRIPTOR_PATH_SIZE];
    int file = nameless_create(path, mode);
    descriptor_path(file, link_path);
    if (file < 0 || access(link_path, F_OK) == 0)
        return file;
    close(file); /* nobody has mounted /proc */
    return -1;
}

/* ---------------------------------------------------------------- temporary names */

/* A name beside the file's that nothing has yet, for make() to give it: a rename works only within
 * one file system. Returns what that does, -1 with errno where it fails. */
static int take_temporary_name(struct draft *draft, int (*make)(struct draft *draft, mode_t mode),
                               mode_t mode)
{
    size_t size = strlen(draft->path) + MARK_SIZE;
    for (int i = 0; i < TRIES; i++) {
        snprintf(draft->temporary, size, "%s" TEMPORARY_MARK "%ld-%d", draft->path, (long)getpid(),
                 i);
        int made = make(draft, mode);
        if (made >= 0 || errno != EEXIST) {
            draft->is_named = made >= 0;
            return made;
        }
    }
    return -1;
}

static int create_named(struct draft *draft, mode_t mode)
{
    return temporary_create(draft->temporary, mode);
}

static int link_named(struct draft *draft, mode_t mode)
{
    char link_path[DESCRIPTOR_PATH_SIZE];
    (void)mode;
    descriptor_path(draft->descriptor, link_path);
    return temporary_link(link_path, draft->temporary);
}

/* Copies a file to its end. Returns 0, or -1 with errno. */
static int copy_contents(int from, int to)
{
    char bytes[COPY_BYTES];
    off_t place = 0;
    for (ssize_t count; (count = pread(from, bytes, sizeof bytes, place)) != 0;) {
        if (count < 0)
            return -1;
        for (ssize_t done = 0; done < count;) {
            ssize_t written = write(to, bytes + done, (size_t)(count - done));
            if (written < 0)
                return -1;
            done += written;
        }
        place += count;
    }
    return 0;
}

/* Some file systems have files without a name, but never give them one (those in user space, where
 * a program of its own decides). */
static int copy_named(struct draft *draft)
{
    struct stat about;
    if (fstat(draft->descriptor, &about) != 0)
        return -1;
    int file = take_temporary_name(draft, create_named, about.st_mode & 0777);
    if (file < 0 || copy_contents(draft->descriptor, file) != 0) {
        int code = errno;
        if (file >= 0)
            close(file);
        errno = code;
        return -1;
    }
    close(draft->descriptor);
    draft->descriptor = file;
    return 0;
}

/* ---------------------------------------------------------------- beginning and ending */

static void release(struct draft *draft)
{
    if (draft->descriptor >= 0)
        close(draft->descriptor);
    free(draft->path);
    free(draft->temporary);
    *draft = (struct draft){.descriptor = -1};
}

int draft_open(struct draft *draft, const char *path, mode_t mode)
{
    *draft = (struct draft){.descriptor = -1, .path = strdup(path)};
    draft->temporary = malloc(strlen(path) + MARK_SIZE);
    if (!draft->path || !draft->temporary) {
        release(draft);
        return ENOMEM;
    }
    remove_all_left(path);
    draft->descriptor = create_linkable(path, mode);
    if (draft->descriptor < 0)
        draft->descriptor = take_temporary_name(draft, create_named, mode);
    int code = draft->descriptor < 0 ? errno : 0;
    if (code != 0)
        release(draft);
    else
        (void)flock(draft->descriptor, LOCK_EX | LOCK_NB); /* for remove_left */
    return code;
}

/* Gives a file without a name its own one, or where that is taken a temporary one. */
static int give_name(struct draft *draft)
{
    char link_path[DESCRIPTOR_PATH_SIZE];
    descriptor_path(draft->descriptor, link_path);
    if (linkat(AT_FDCWD, link_path, AT_FDCWD, draft->path, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    if (errno == EEXIST && take_temporary_name(draft, link_named, 0) == 0)
        return 0;
    return copy_named(draft);
}

int draft_commit(struct draft *draft)
{
    int code = draft->is_named || give_name(draft) == 0 ? 0 : errno;
    if (code == 0 && draft->is_named) {
        code = rename(draft->temporary, draft->path) == 0 ? 0 : errno;
        if (code == 0) {
            temporary_forget(draft->temporary);
            draft->is_named = false;
        }
    }
    draft_discard(draft);
    return code;
}

void draft_discard(struct draft *draft)
{
    if (!draft->path)
        return;
    if (draft->is_named) {
        (void)unlink(draft->temporary);
        temporary_forget(draft->temporary);
    }
    release(draft);
}
