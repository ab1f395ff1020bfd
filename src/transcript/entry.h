/*
 * Entries of a transcript: the file's content, typed and checked for form, but not yet for meaning.
 * Both spellings (tagged and plain) give the same entries.
 */
#ifndef HEALCL_TRANSCRIPT_ENTRY_H
#define HEALCL_TRANSCRIPT_ENTRY_H

#include "transcript/payload.h"

struct tensor;

enum argument_kind {
    ARGUMENT_DEVICE_TENSOR,
    ARGUMENT_HOST_TENSOR,
    ARGUMENT_SHAPE, /* a shape or an index */
    ARGUMENT_INT,
    ARGUMENT_NONE,
    ARGUMENT_TENSOR_TYPE,
    ARGUMENT_SLICE,
    ARGUMENT_ELLIPSIS,
};

/* The spelling in transcripts, such as "DEVICE_TENSOR". */
const char *argument_kind_name(enum argument_kind kind);

enum {
    INDEX_ITEMS_MAX = 32,    /* in one SHAPE; longer lists are refused */
    ENTRY_ARGUMENTS_MAX = 16 /* kept for one operation; further ones are counted, but not read */
};

struct argument {
    enum argument_kind kind;
    union {
        struct {
            /* The inf_name: digits for an integer name, text in double quotes for a string name,
             * so that 5 and "5" are different names. Lives as long as the entry. */
            const char *name;
            const struct tensor *bound; /* for a call, which has no names: the tensor; else NULL */
            bool has_dtype;
            enum dtype dtype;
        } tensor;
        struct {
            bool present; /* false for a HOST_TENSOR without data: null, {} or no tensor_base64 */
            struct payload payload;
        } host;
        struct {
            uint32_t count;
            struct healcl_index items[INDEX_ITEMS_MAX];
        } shape;
        int64_t integer; /* booleans are 0 and 1 */
        enum dtype dtype;
        struct healcl_index slice; /* kind HEALCL_INDEX_SLICE */
    };
};

enum entry_kind {
    ENTRY_OPERATION,
    ENTRY_FREE,          /* name: the tensor's, spelled like argument.tensor.name */
    ENTRY_SEGMENT_START, /* name: the segment's */
    ENTRY_SEGMENT_END,
    ENTRY_NOTHING,
    ENTRY_COPY, /* only by call: of its first tensor to its second one */
};

struct entry {
    size_t index; /* index in the transcript, from 0 */
    enum entry_kind kind;
    const char *name;        /* of the operation as written, the segment or the freed tensor */
    uint32_t argument_count; /* may exceed ENTRY_ARGUMENTS_MAX */
    struct argument arguments[ENTRY_ARGUMENTS_MAX];
    struct argument out; /* ARGUMENT_NONE if absent */
    bool makes_out;      /* true for a call: its argument `out` may be NONE, for a new tensor */
};

/* Reads the entries of a source, one at a time, in bounded memory. An entry may have 1 MiB of text
 * besides its base64, and nest 64 levels deep. */
struct entry_reader;

/* source and arena must outlive the reader and the payloads of its entries. */
enum healcl_status entry_reader_open(const struct source *source, struct arena *arena,
                                     struct entry_reader **reader, struct healcl_error *error);
void entry_reader_close(struct entry_reader *reader);

/*
 * Reads the next entry. After the last one, checks the end of the file and sets *entry to NULL. The
 * entry and everything it points to live until the next call; payload spans live as long as the
 * source. Refusals name the entry, the operation and the argument (from 1, or "out") as far as they
 * are known: "entry 17 (_modmul_ttt): argument 2: ...". After a failure the reader can only be
 * closed.
 */
enum healcl_status entry_reader_next(struct entry_reader *reader, const struct entry **entry,
                                     struct healcl_error *error);

#endif
