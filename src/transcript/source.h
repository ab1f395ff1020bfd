/* A transcript file mapped into memory, read only. A packed one is first unpacked to a temporary
 * file. */
#ifndef HEALCL_TRANSCRIPT_SOURCE_H
#define HEALCL_TRANSCRIPT_SOURCE_H

#include <sys/stat.h>

#include "core/status.h"

struct beside;

struct source {
    const char *text; /* not terminated; NULL for an empty file */
    size_t length;
    bool mapped;        /* by source_open; false for the caller's buffer */
    bool is_shared;     /* others can write to the mapped file, which is open as `file` */
    int file;           /* if is_shared */
    struct stat opened; /* state of the file when it was opened */
    /* The transcript's folders, and the payload file there. NULL: transcript in memory. */
    struct beside *beside;
};

/*
 * Errors: HEALCL_USAGE if the file cannot be opened, is not a regular file, or there is no room to
 * unpack it; HEALCL_REFUSED if it is packed (see unpack.h) and damaged; HEALCL_NO_MEMORY if it
 * cannot be mapped.
 * If a file is truncated while it is mapped, reading a lost page ends the process (SIGBUS), unless
 * the program handles that signal. core/registry.h knows which files are mapped.
 */
enum healcl_status source_open(struct source *source, const char *path, struct healcl_error *error);
/* Opens a transcript in memory, which must outlive the source. A packed one is first unpacked to a
 * temporary file. Errors: as source_open. */
enum healcl_status source_open_memory(struct source *source, const void *data, size_t length,
                                      struct healcl_error *error);
void source_close(struct source *source);

/*
 * At the first call, opens the file of raw payloads in the transcript's folder. A transcript has
 * only one. *file lives as long as the source.
 * Errors: HEALCL_USAGE if it cannot be opened; HEALCL_REFUSED for a name with a path, a link out of
 * the folder, a second file, or a transcript in memory; HEALCL_NO_MEMORY.
 */
enum healcl_status source_open_beside(const struct source *source, const char *name,
                                      const struct source **file, struct healcl_error *error);

/* Makes the transcript's file an input of this process (core/registry.h), or ends that. A
 * transcript and its payload file are both inputs while they are open. source may be NULL. Returns
 * false if memory ran out. */
bool source_hold(const struct source *source, bool is_input);

/* The path of the open file of raw payloads, or NULL. It lives as long as the source. */
const char *source_beside(const struct source *source);

/* Refuses a source if its file, or its payload file, has been written to since it was opened. A
 * file that was replaced by a rename is not refused: the original remains mapped. */
enum healcl_status source_check(const struct source *source, struct healcl_error *error);

/* Refuses a source if its file, or its payload file, is shorter than when it was opened. Reading
 * the missing part would end the process. */
enum healcl_status source_check_size(const struct source *source, struct healcl_error *error);

/* Explains a status. If it is a refusal or a difference, and source_check refuses the source,
 * source_check's error replaces it. */
enum healcl_status source_explain(const struct source *source, enum healcl_status status,
                                  struct healcl_error *error);

/* Allows the system to drop the pages of [begin, begin + length) from memory. They can still be
 * read, and are then mapped again. This keeps the resident size small while a large file is read.
 * Does nothing if the source is not mapped or is small. */
void source_forget(const struct source *source, const char *begin, size_t length);

#endif
