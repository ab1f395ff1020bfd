/*
 * The scanner: finds the entries of a transcript in the mapped file and checks that the file is
 * JSON (RFC 8259, UTF-8). It copies no tensor data and builds no tree: each entry is rewritten
 * into a small text for cJSON, in which
 * - the string value of a key "data" is "@OFFSET,LENGTH,GOOD": a span of the file, in bytes between
 *   the quotes, decimal, and what base64_good says of it;
 * - a number is "#" and its exact characters, as cJSON would read it into a double;
 * - any other string value is "$" and its characters.
 * Each of these is a JSON string; keys stay as they are and white space is left out.
 */
#ifndef HEALCL_TRANSCRIPT_SCAN_H
#define HEALCL_TRANSCRIPT_SCAN_H

#include "core/status.h"
#include "transcript/source.h"

enum {
    SCAN_DEPTH_MAX = 64,        /* lists and objects within each other, the outermost included */
    SCAN_TEXT_MAX = 1024 * 1024 /* bytes of a rewritten entry */
};

/* At first it has a source and the text's memory, of SCAN_TEXT_MAX + 1 bytes, and else 0. */
struct scanner {
    const struct source *source;
    size_t at;        /* offset of the next byte */
    size_t forgotten; /* source_forget has been called for what lies before */
    enum { SCAN_START, SCAN_LIST, SCAN_END } place;
    bool in_object;         /* the list is that of an ExecutionTranscript object */
    bool has_tag, has_list; /* which of its keys have been seen */
    size_t entry_count;     /* entries begun */
    bool in_entry;          /* what was found, or a failure, is entry_count - 1 */
    char *text;             /* the rewritten entry, terminated */
    size_t length;          /* of it */
};

/*
 * Finds and rewrites the next entry. in_entry is false behind the last one, when the whole file has
 * been checked. After a failure the scanner is of no more use. Messages of what is not JSON name
 * the byte's offset.
 */
enum healcl_status scanner_next(struct scanner *scanner, struct healcl_error *error);

#endif
