/* The folder of what is kept between runs (cache.c). */
#ifndef HEALCL_PROGRAMS_CACHE_H
#define HEALCL_PROGRAMS_CACHE_H

#include "device/device.h"

enum { CACHE_KEY_SIZE = 33 };

/* Where files are kept between runs, or NULL for nowhere: HEALCL_CACHE_DIR, else healcl in
 * XDG_CACHE_HOME, else in ~/.cache. Freed with free(). */
char *cache_directory(void);

/* "<directory>/<name>", or NULL without memory. Freed with free(). */
char *cache_path(const char *directory, const char *name);

/* Names a file by all that it depends on, in hexadecimal: the device and its driver, what drivers'
 * compilers take from the environment, what kind of file it is (abi), options and texts. */
void cache_key(const struct device_info *info, const char *abi, const char *options,
               size_t text_count, const char *const *texts, char key[CACHE_KEY_SIZE]);

/* What is kept under a name, freed with free(), or NULL: there is no such file, it is damaged, or
 * it was kept under another name. */
unsigned char *cache_read(const char *directory, const char *name, size_t *bytes);

/* The same of cache_directory(), and of one line, which goes without its end into text of so many
 * characters. */
bool cache_read_line(const char *name, size_t size, char *text);

struct cache_part {
    const void *data;
    size_t bytes;
};

/* Keeps some parts, one after the other, under a name; makes the folder if need be. Other processes
 * see the whole file or none: it is written under another name. Returns whether it is there; else
 * errno says why not. */
bool cache_write(const char *directory, const char *name, size_t count,
                 const struct cache_part *parts);

#endif
