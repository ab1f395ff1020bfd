/* A transcript file mapped into memory, read only; unpacked to a temporary file before if need be.
 */
#ifndef HEALCL_TRANSCRIPT_SOURCE_H
#define HEALCL_TRANSCRIPT_SOURCE_H

#include <sys/stat.h>

#include "core/status.h"

struct beside;

struct source {
    const char *text; /* not terminated; NULL for an empty file */
    size_t length;
    bool mapped;           /* by source_open; false for a buffer of the caller's */
    bool is_shared;        /* others can write to what is mapped: a file, open below */
    int file;              /* where is_shared */
    struct stat opened;    /* the file, when it was opened */
    struct beside *beside; /* a transcript's folder, and a file there; NULL: it is in memory */
};

/*
 * Errors: HEALCL_USAGE where the file cannot be opened or is not a regular file, or cannot be
 * unpacked for want of room; HEALCL_REFUSED where it is packed (see unpack.h) and damaged;
 * HEALCL_NO_MEMORY where it cannot be mapped.
 * A file that is cut while it is mapped ends the process when a lost page is read (SIGBUS), unless
 * the program handles that: core/registry.h knows what is mapped.
 */
enum healcl_status source_open(struct source *source, const char *path, struct healcl_error *error);
/* A transcript in memory, which outlives the source; one that is packed is unpacked to a temporary
 * file first. Errors: as source_open. */
enum healcl_status source_open_memory(struct source *source, const void *data, size_t length,
                                      struct healcl_error *error);
void source_close(struct source *source);

/*
 * Opens the file of raw payloads in the transcript's folder, at the first call: a transcript has
 * one. *file lives as long as the source.
 * Errors: HEALCL_USAGE where it cannot be opened; HEALCL_REFUSED for a path, a link out of the
 * folder, a second file, and a transcript in memory; HEALCL_NO_MEMORY.
 */
enum healcl_status source_open_beside(const struct source *source, const char *name,
                                      const struct source **file, struct healcl_error *error);

/* Makes the transcript's file an input of this process (core/registry.h), or no longer one. The two
 * files of a pack are inputs while they are open. source may be NULL. Returns false if memory ran
 * out. */
bool source_hold(const struct source *source, bool is_input);

/* The path of the file of raw payloads; NULL: none is open. Lives as long as the source. */
const char *source_beside(const struct source *source);

/* Refuses a file that has been written to since it was opened, or that of its payloads. One that
 * another has taken the place of, by a rename, is still what is mapped. */
enum healcl_status source_check(const struct source *source, struct healcl_error *error);

/* Refuses a file that is shorter than when it was opened, or that of its payloads: to read what was
 * cut off would end the process. */
enum healcl_status source_check_size(const struct source *source, struct healcl_error *error);

/* Explains a status: where it is a refusal or a difference, and source_check refuses the file,
 * that goes in its place. */
enum healcl_status source_explain(const struct source *source, enum healcl_status status,
                                  struct healcl_error *error);

/* Lets the system drop the pages of [begin, begin + length) from memory; they can still be read
 * and are then mapped anew. Keeps the resident size small while a large file is read. Does
 * nothing for a source that is not mapped, or not large. */
void source_forget(const struct source *source, const char *begin, size_t length);

#endif
