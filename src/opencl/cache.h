/*
 * A folder of files that are cached between runs: binaries, findings of the self-test, tunings,
 * rates. A file is named by its kind and a hash of all that it depends on. Its first line is that
 * name and a hash of what follows:
 *
 *     healcl kept 2 tuning_00c0...ffee 6f0c...24a1
 *
 * A file that is damaged, renamed, or copied over another one is as none. A package is a zip of
 * such files (package.h).
 */
#ifndef HEALCL_OPENCL_CACHE_H
#define HEALCL_OPENCL_CACHE_H

#include "core/hash.h"
#include "opencl/device.h"

enum { CACHE_NAME_SIZE = 16 + HASH_SIZE, CACHE_HEAD_SIZE = 160 };

/* HEALCL_CACHE_DIR, else healcl in XDG_CACHE_HOME, else in ~/.cache; NULL for nowhere. Freed with
 * free(). */
char *cache_directory(void);

/* Names a file that depends on texts, the device and its driver, and what drivers' compilers take
 * from the environment. kind has at most 15 characters. */
void cache_name(const struct device_info *info, const char *kind, size_t count,
                const char *const *texts, char name[CACHE_NAME_SIZE]);

/* The first line of a file with that name and contents. Returns its length. */
size_t cache_head(const char *name, const void *data, size_t bytes, char head[CACHE_HEAD_SIZE]);

/* Moves what is behind a right first line to the start of data. Returns whether it is right. */
bool cache_take_contents(const char *name, unsigned char *data, size_t *bytes);

/* The contents kept under a name, freed with free(), or NULL. */
unsigned char *cache_read(const char *directory, const char *name, size_t *bytes);

/* Whether there is a file of that name. */
bool cache_has(const char *directory, const char *name);

/* Whether files can be kept in a folder, which is made if need be. */
bool cache_can_write(const char *directory);

/* Keeps data under a name; makes the folder if need be. Other processes see the whole file or none.
 * Errors: HEALCL_USAGE where it cannot be written. */
enum healcl_status cache_write(const char *directory, const char *name, const void *data,
                               size_t bytes, struct healcl_error *error);

/* Locks cache_directory() for those that change what is kept there, until the file that is returned
 * is closed, or its process ends. -1: there is no such folder, or it cannot be written. */
int cache_lock(void);

/* Removes what is cached under a name, if that can be. */
void cache_remove(const char *directory, const char *name);

/* Texts of fewer than size bytes, in cache_directory(). */
bool cache_read_text(const char *name, size_t size, char *text);

/* *path is the file, freed with free(), or NULL where nothing is to be cached; path may be NULL.
 * Errors: HEALCL_USAGE where it cannot be written. */
enum healcl_status cache_write_text(const char *name, const char *text, char **path,
                                    struct healcl_error *error);

#endif
