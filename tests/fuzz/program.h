/*
 * Programs that the bytes of a fuzzer choose: calls of all operations on views of few storages,
 * which they share, overlap and write to in place.
 *
 * Each call is made by a queue on the host reference first, and, where a device is given, by one on
 * it, which must answer the same. Accepted calls become entries of a transcript, with the queue's
 * results as expected ones. Any run of it can thus be compared with operations by call on the
 * reference, which know neither plans of a whole nor passes. Refused data end the program, and
 * others must refuse them in the same words.
 */
#ifndef HEALCL_TESTS_FUZZ_PROGRAM_H
#define HEALCL_TESTS_FUZZ_PROGRAM_H

#include "fuzz.h"
#include "healcl.h"
#include "tools/writer.h"

/* The rest of an input; zeros follow its end. */
struct bytes {
    const uint8_t *next;
    size_t left;
};

/* A byte, and a number below one that is at least 1. */
static inline uint8_t take(struct bytes *bytes)
{
    if (bytes->left == 0)
        return 0;
    bytes->left--;
    return *bytes->next++;
}

static inline uint32_t take_below(struct bytes *bytes, uint32_t end)
{
    const uint32_t high = end > 256 ? take(bytes) : 0; /* in this order with any compiler */
    return (high << 8 | take(bytes)) % end;
}

enum { PROGRAM_TENSORS = 64, REFERENCE = 0, DEVICE = 1, SIDES = 2 };

struct program {
    struct bytes bytes;
    struct writer writer;
    struct healcl_queue *const *queues; /* of both sides, or of the reference alone */
    int sides;
    struct named {
        char name[12];
        struct healcl_tensor *tensor[SIDES];
        bool is_raw; /* nobody has written to it: it may hold anything */
    } pool[PROGRAM_TENSORS];
    uint32_t count, names;
    size_t entries, downloads;
    bool in_segment, ended;
    /* Nobody runs it: it has no data, and calls that are refused for what they are may end it too.
     */
    bool is_for_plan;
    char refusal[640]; /* of its last entry, without the beginning that counts calls; or "" */
};

/* Makes a program, whose text is writer's then. device: NULL, or the same one with each call. */
void program_make(struct program *program, const uint8_t *data, size_t size, bool is_for_plan,
                  struct healcl_device *device);
void program_release(struct program *program);

/* Checks that an entry's refusal has the message of the queue's call. */
void program_expect_refusal(const struct program *program, const char *message);

#endif
