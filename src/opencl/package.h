/*
 * Packages: precompiled binaries in one file (docs/PACKAGES.md). A package is a zip of files in the
 * cache's format (cache.h), and of manifest.json, which names the device. The files are named only
 * by what was compiled: "binary_<key>" with the program's key.
 *
 * An FPGA's image, the file "image", holds several programs. The manifest gives each program a
 * prefix for its kernels' names in the image: "p001_".
 */
#ifndef HEALCL_OPENCL_PACKAGE_H
#define HEALCL_OPENCL_PACKAGE_H

#include "opencl/cache.h"

#define PACKAGE_IMAGE "image"

enum {
    PACKAGE_ABI = 2, /* increased when the meaning of an unchanged manifest changes */
    PACKAGE_MANIFEST_BYTES_MAX = 4 << 20
};

struct package_member {
    char name[CACHE_NAME_SIZE];
    unsigned char *data; /* without its first line */
    size_t bytes;
};

struct package {
    char path[512]; /* for messages: it may be cut */
    struct cJSON *manifest;
    struct package_member *members;
    size_t member_count;
};

/* Reads a package. *package is freed with package_free, and is NULL after an error. Errors:
 * HEALCL_USAGE if the file cannot be read, HEALCL_REFUSED if it is not a package or is damaged. */
enum healcl_status package_read(const char *path, struct package **package,
                                struct healcl_error *error);

/* As package_read, from bytes in memory. The package then has no path. */
enum healcl_status package_read_zip(const void *data, size_t bytes, struct package **package,
                                    struct healcl_error *error);

/* Parses the text of manifest.json into a package without a manifest. A 0 must follow the text. */
enum healcl_status package_read_manifest(struct package *package, const char *text, size_t bytes,
                                         struct healcl_error *error);

/* package may be NULL. */
void package_free(struct package *package);

/* A text of the manifest, such as "tuning" or "choices". */
const char *package_text(const struct package *package, const char *name);

/* The text at a key of one of the manifest's objects, "programs" or "device"; or NULL. */
const char *package_entry(const struct package *package, const char *object, const char *key);

/* NULL if the package has no such file. */
const struct package_member *package_member(const struct package *package, const char *name);

/* Checks that the package is for this device. Errors: HEALCL_REFUSED. */
enum healcl_status package_check(const struct package *package, const struct device_info *info,
                                 struct healcl_error *error);

#endif
