/*
 * Packages: binaries that were compiled before, in one file (docs/PACKAGES.md). A zip of files as
 * the cache has them (cache.h), and of manifest.json, which says for which device they are. There
 * they are named by what was compiled alone: "binary_<key>" of a program's key.
 *
 * An FPGA's image is of several programs: it is the file "image", and the manifest's programs tell
 * what a program's kernels are called by there, "p001_" before their names.
 */
#ifndef HEALCL_OPENCL_PACKAGE_H
#define HEALCL_OPENCL_PACKAGE_H

#include <stdio.h>

#include "opencl/cache.h"

#define PACKAGE_IMAGE "image"

enum {
    PACKAGE_ABI = 2, /* to be raised where the same manifest comes to mean something else */
    PACKAGE_MANIFEST_BYTES_MAX = 4 << 20
};

struct package_member {
    char name[CACHE_NAME_SIZE];
    unsigned char *data; /* without its first line */
    size_t bytes;
};

struct package {
    char *path;
    struct cJSON *manifest;
    struct package_member *members;
    size_t member_count;
};

/* Reads a package. *package is freed with package_free, NULL after an error. Errors: HEALCL_USAGE
 * where the file cannot be read, HEALCL_REFUSED where it is no package or is damaged. */
enum healcl_status package_read(const char *path, struct package **package,
                                struct healcl_error *error);

/* As package_read, of bytes in memory, and without a path. */
enum healcl_status package_read_zip(const void *data, size_t bytes, struct package **package,
                                    struct healcl_error *error);

/* Reads manifest.json, with a 0 behind it, into a package that has none. */
enum healcl_status package_read_manifest(struct package *package, const char *text, size_t bytes,
                                         struct healcl_error *error);

/* Writes it. Errors: HEALCL_USAGE where the stream cannot be written. */
enum healcl_status package_write(const struct package *package, FILE *stream,
                                 struct healcl_error *error);

/* May be NULL. */
void package_free(struct package *package);

/* A text of the manifest: "tuning", "choices". */
const char *package_text(const struct package *package, const char *name);

/* A text of one of its objects by key, "programs" or "device"; or NULL. */
const char *package_entry(const struct package *package, const char *object, const char *key);

/* NULL where there is none. */
const struct package_member *package_member(const struct package *package, const char *name);

/* Whether it is for a device. Errors: HEALCL_REFUSED. */
enum healcl_status package_check(const struct package *package, const struct device_info *info,
                                 struct healcl_error *error);

#endif
