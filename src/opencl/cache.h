/*
 * A folder of files that are cached between runs: binaries, results of the self-test, tunings,
 * transfer rates. A file is named by its kind and a hash of all that it depends on. Its first line
 * has that name and a hash of the contents:
 *
 *     healcl kept 2 tuning_00c0...ffee 6f0c...24a1
 *
 * A file that is damaged, renamed, or copied over another one counts as missing. A package is a zip
 * of such files (package.h).
 */
#ifndef HEALCL_OPENCL_CACHE_H
#define HEALCL_OPENCL_CACHE_H

#include "core/hash.h"
#include "opencl/device.h"

enum { CACHE_NAME_SIZE = 16 + HASH_SIZE, CACHE_HEAD_SIZE = 160, CACHE_PATH_SIZE = 4096 };

/* Writes the folder's path: HEALCL_CACHE_DIR, else healcl in XDG_CACHE_HOME, else ~/.cache/healcl.
 * Returns false if nothing is cached: the folder is "", or unknown, or its path is too long. */
bool cache_directory(char path[CACHE_PATH_SIZE]);

/* Names a file that depends on texts, the device and its driver, and environment variables that
 * drivers' compilers read. kind has at most 15 characters. */
void cache_name(const struct device_info *info, const char *kind, size_t count,
                const char *const *texts, char name[CACHE_NAME_SIZE]);

/* Writes the first line of a file with this name and contents. Returns its length. */
size_t cache_head(const char *name, const void *data, size_t bytes, char head[CACHE_HEAD_SIZE]);

/* Moves the contents of a file to the start of data if its first line is valid. Returns whether it
 * is. */
bool cache_take_contents(const char *name, unsigned char *data, size_t *bytes);

/* The contents cached under a name, freed with free(), or NULL. */
unsigned char *cache_read(const char *name, size_t *bytes);

/* Reads a cached text of fewer than size bytes. Returns whether it did. */
bool cache_read_text(const char *name, size_t size, char *text);

/* Whether a file of that name exists. */
bool cache_has(const char *name);

/* Whether files can be written to the folder, which is created if necessary. If not, errno says
 * why. */
bool cache_can_write(void);

/* Caches data under a name. Creates the folder if necessary. Other processes see the whole file or
 * none. *path is the file's path, freed with free(), or NULL if nothing is cached. path may be
 * NULL. Errors: HEALCL_USAGE if the file cannot be written. */
enum healcl_status cache_write(const char *name, const void *data, size_t bytes, char **path,
                               struct healcl_error *error);

/* Locks the folder against other processes that change its files. The lock lasts until the returned
 * file is closed, or the process ends. -1: the folder does not exist, or cannot be written. */
int cache_lock(void);

/* Removes the file cached under a name, if possible. */
void cache_remove(const char *name);

#endif
