/*
 * Packages: programs that were compiled before, in one file (docs/PACKAGES.md). A zip of binaries,
 * the images, and of manifest.json, which says for which device they are and which programs and
 * kernels are in them. Its comment, the last bytes of the file, ends with a hash of all that comes
 * before, so that no damaged byte reaches a driver.
 */
#ifndef HEALCL_PACKAGE_PACKAGE_H
#define HEALCL_PACKAGE_PACKAGE_H

#include <stdio.h>

#include "core/status.h"

enum {
    PACKAGE_ABI = 1, /* to be raised where the same manifest comes to mean something else */
    PACKAGE_HASH_SIZE = 33,
    PACKAGE_FILE_SIZE = 65,              /* of a member's name */
    PACKAGE_MANIFEST_BYTES_MAX = 4 << 20 /* those of the bundled transcripts take 30 kB */
};

/* A kernel, and how it is called in the image: others may have kernels of the same name there. */
struct package_kernel {
    const char *name, *symbol;
    const char *arguments; /* that it takes, as programs/arguments.c writes them; NULL: unknown */
};

struct package_program {
    const char *name, *options;     /* as the compiler got them */
    char source[PACKAGE_HASH_SIZE]; /* a hash of its texts */
    uint64_t local_size;            /* the work-group that it is compiled for */
    size_t image;                   /* index */
    struct package_kernel *kernels;
    size_t kernel_count;
};

/* A binary, of one program or of several. */
struct package_image {
    char file[PACKAGE_FILE_SIZE];
    char hash[PACKAGE_HASH_SIZE];
    unsigned char *data; /* NULL: not read, or not compiled yet */
    size_t bytes;
};

struct package {
    char *path; /* or NULL */
    const char *platform, *device, *driver, *version;
    const char *tuning;  /* as tuning_format writes it */
    const char *choices; /* among kernels of manifests, as kernel_choices_format writes them */
    struct package_program *programs;
    size_t program_count;
    struct package_image *images;
    size_t image_count;
    struct cJSON *manifest; /* that has the texts, where it was read */
};

/* Reads a package. *package is freed with package_free, NULL after an error. Errors: HEALCL_USAGE
 * where the file cannot be read, HEALCL_REFUSED where it is no package or has been changed. */
enum healcl_status package_read(const char *path, struct package **package,
                                struct healcl_error *error);

/* The same of bytes in memory without looking at their hash. */
enum healcl_status package_read_zip(const void *data, size_t bytes, struct package **package,
                                    struct healcl_error *error);

/* Reads a folder that was emitted: its manifest.json, and the images that it names. */
enum healcl_status package_read_folder(const char *folder, struct package **package,
                                       struct healcl_error *error);

/* Takes over data, also where it fails; the same bytes are one image. */
enum healcl_status package_add_image(struct package *package, unsigned char *data, size_t bytes,
                                     size_t *index, struct healcl_error *error);

/* manifest.json, freed with free(). NULL without memory. */
char *package_manifest(const struct package *package);

/* Writes a package. Errors: HEALCL_USAGE where the stream cannot be written. */
enum healcl_status package_write(const struct package *package, FILE *stream,
                                 struct healcl_error *error);

/* May be NULL. Texts that were not read with it are the caller's. */
void package_free(struct package *package);

/* ---- manifest.c ---- */

/* Reads manifest.json, with a 0 behind it, into an empty package: everything but the images' data.
 */
enum healcl_status package_read_manifest(struct package *package, const char *text, size_t bytes,
                                         struct healcl_error *error);

/* ---- hash.c ---- */

void package_hash(const void *data, size_t bytes, char hash[PACKAGE_HASH_SIZE]);

/* Of several texts, no end of which can pass for the beginning of the next. */
void package_hash_texts(size_t count, const char *const *texts, char hash[PACKAGE_HASH_SIZE]);

/* "healcl package " and the hash end the file. */
#define PACKAGE_SEAL "healcl package "

#endif
