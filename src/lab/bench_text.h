/* Writing small transcripts, in the plain spelling, for what is to be measured. */
#ifndef HEALCL_LAB_BENCH_TEXT_H
#define HEALCL_LAB_BENCH_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include "core/dtype.h"

enum { EXTENTS_RANK = 5 };

struct extents {
    uint32_t rank;
    int64_t size[EXTENTS_RANK];
};

/* One argument of an operation; a list of them ends with BENCH_END. */
struct bench_argument {
    enum {
        BENCH_ARGUMENT_END,
        BENCH_ARGUMENT_TENSOR,
        BENCH_ARGUMENT_INT,
        BENCH_ARGUMENT_NONE,
        BENCH_ARGUMENT_SHAPE,
        BENCH_ARGUMENT_DTYPE,
        BENCH_ARGUMENT_RANGE, /* the index [..., first:end] */
    } kind;
    int64_t value; /* of an INT; a tensor's name */
    int64_t first, end;
    struct extents shape;
    enum dtype dtype;
};

#define BENCH_END                  \
    {                              \
        .kind = BENCH_ARGUMENT_END \
    }
#define BENCH_NONE                  \
    {                               \
        .kind = BENCH_ARGUMENT_NONE \
    }
#define BENCH_TENSOR(name)                             \
    {                                                  \
        .kind = BENCH_ARGUMENT_TENSOR, .value = (name) \
    }
#define BENCH_INT(number)                             \
    {                                                 \
        .kind = BENCH_ARGUMENT_INT, .value = (number) \
    }
#define BENCH_SHAPE(extents)                             \
    {                                                    \
        .kind = BENCH_ARGUMENT_SHAPE, .shape = (extents) \
    }
#define BENCH_DTYPE(type)                             \
    {                                                 \
        .kind = BENCH_ARGUMENT_DTYPE, .dtype = (type) \
    }
#define BENCH_RANGE(from, to)                                      \
    {                                                              \
        .kind = BENCH_ARGUMENT_RANGE, .first = (from), .end = (to) \
    }

/* All append to a stream, whose errors are for the caller to see at its end. A transcript begins
 * with its first segment; write_next_segment ends one and begins another; then comes write_end. */
void write_first_segment(FILE *stream, const char *name);
void write_next_segment(FILE *stream, const char *name);
void write_end(FILE *stream);

/* out: the name that the result is bound to, or 0 for none. */
void write_operation(FILE *stream, const char *name, int out,
                     const struct bench_argument *arguments);

/* An upload of so many values as the shape says, in C order; each fits dtype. */
void write_upload(FILE *stream, int out, enum dtype dtype, struct extents shape,
                  const int64_t *values);

void write_free(FILE *stream, int name);

#endif
