/*
 * The scanner finds the entries of a transcript in the mapped file. It checks that the file is JSON
 * (RFC 8259, UTF-8). It copies no tensor data and builds no tree. It rewrites each entry into a
 * small text for cJSON, in which
 * - the string value of a key "data" is "@OFFSET,LENGTH,GOOD", in decimal: the span of the file
 *   between the quotes, in bytes, and the result of base64_good for it;
 * - a number is "#" and its exact characters, because cJSON would read it into a double;
 * - any other string value is "$" and its characters.
 * Each of these is a JSON string. Keys stay unchanged, and white space is omitted.
 */
#ifndef HEALCL_TRANSCRIPT_SCAN_H
#define HEALCL_TRANSCRIPT_SCAN_H

#include "transcript/source.h"

enum {
    SCAN_DEPTH_MAX = 64,        /* nested lists and objects, including the outermost */
    SCAN_TEXT_MAX = 1024 * 1024 /* bytes of a rewritten entry */
};

/* Initialise source, and text with memory of SCAN_TEXT_MAX + 1 bytes; all else is 0. */
struct scanner {
    const struct source *source;
    size_t at;        /* offset of the next byte */
    size_t forgotten; /* source_forget has been called for all before this offset */
    enum { SCAN_START, SCAN_LIST, SCAN_END } place;
    bool in_object;         /* the list is in an ExecutionTranscript object */
    bool has_tag, has_list; /* keys of that object seen so far */
    size_t entry_count;     /* entries begun */
    bool in_entry;          /* the entry found, or the failure, has index entry_count - 1 */
    char *text;             /* the rewritten entry, terminated */
    size_t length;          /* of text */
};

/*
 * Finds and rewrites the next entry. After the last one, it checks the rest of the file, and
 * in_entry is false. After a failure the scanner cannot be used again. If the file is not JSON,
 * messages name the byte's offset.
 */
enum healcl_status scanner_next(struct scanner *scanner, struct healcl_error *error);

#endif
