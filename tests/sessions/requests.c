/*
 * A service under test: requests TRANSCRIPT FOLDER KINDS REQUESTS SEGMENT [DEVICE]. All requests go
 * through one session. Number i takes the inputs whose segments are named SEGMENT... from the file
 * FOLDER/in.K, K = i modulo KINDS: their elements, packed, one input behind the other. Results go
 * to FOLDER/out.K in the same way, and later requests of a kind must give the same bytes.
 *
 * Prints what requests uploaded, as the session says and as OpenCL was given it, the memory of the
 * process and of the device after a warm-up of two requests of each kind and at the end, and times.
 * Exit status 1 where a result differs from an earlier one, a request uploads more than its own
 * inputs, or memory grows by 1 %.
 */
#include <healcl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opencl_calls.h"

enum {
    STATUS_BYTES = 64, /* of errors, that each run clears on the device, and little more */
    WARM_UP = 2        /* requests of each kind */
};

static struct healcl_error error;

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void need(enum healcl_status status)
{
    if (status != HEALCL_OK)
        fail(error.message);
}

/* ---------------------------------------------------------------- files */

struct file {
    const char *folder;
    char *memory;
    size_t bytes;
};

static FILE *open_file(const struct file *file, const char *name, int kind, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%d", file->folder, name, kind);
    FILE *stream = fopen(path, mode);
    if (!stream)
        fail(path);
    setvbuf(stream, NULL, _IONBF, 0);
    return stream;
}

static void read_file(struct file *file, const char *name, int kind)
{
    FILE *stream = open_file(file, name, kind, "rb");
    if (fread(file->memory, 1, file->bytes, stream) != file->bytes || fgetc(stream) != EOF)
        fail("a file is not as large as the inputs");
    fclose(stream);
}

static void write_file(const struct file *file, const char *name, int kind)
{
    FILE *stream = open_file(file, name, kind, "wb");
    if (fwrite(file->memory, 1, file->bytes, stream) != file->bytes)
        fail("a file cannot be written");
    fclose(stream);
}

static struct file make_file(const char *folder, size_t bytes)
{
    struct file file = {folder, malloc(bytes + 1), bytes};
    if (!file.memory)
        fail("out of memory");
    memset(file.memory, 0, bytes + 1); /* resident from the beginning */
    return file;
}

/* ---------------------------------------------------------------- figures */

static uint64_t resident_bytes(void)
{
    unsigned long long size = 0, resident = 0;
    FILE *stream = fopen("/proc/self/statm", "r");
    if (!stream || fscanf(stream, "%llu %llu", &size, &resident) != 2)
        fail("/proc/self/statm cannot be read");
    fclose(stream);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool has_grown(const char *what, uint64_t before, uint64_t after)
{
    printf("%s: %" PRIu64 " bytes after the warm-up, %" PRIu64 " at the end (%+.3f %%)\n", what,
           before, after, 100 * ((double)after / (double)before - 1));
    return after > before + before / 100;
}

struct uploads {
    uint64_t least, most;
};

static void note(struct uploads *uploads, uint64_t bytes)
{
    uploads->least = bytes < uploads->least ? bytes : uploads->least;
    uploads->most = bytes > uploads->most ? bytes : uploads->most;
}

/* ---------------------------------------------------------------- the session */

/* Binds the inputs of requests to their places in memory; returns how many bytes they take. */
static size_t bind(struct healcl_session *session, const struct healcl_transcript *transcript,
                   const char *segment, char *memory)
{
    size_t count = 0, bytes = 0;
    const struct healcl_tensor_info *inputs = healcl_transcript_inputs(transcript, &count);
    for (size_t i = 0; i < count; i++) {
        const char *name = healcl_transcript_segment_name(transcript, inputs[i].segment);
        if (strncmp(name, segment, strlen(segment)) != 0)
            continue;
        if (session)
            need(healcl_session_bind(session, i, memory + bytes, &error));
        bytes += inputs[i].bytes;
    }
    return bytes;
}

static size_t receive(struct healcl_session *session, const struct healcl_transcript *transcript,
                      char *memory)
{
    size_t count = 0, bytes = 0;
    const struct healcl_tensor_info *results = healcl_transcript_results(transcript, &count);
    for (size_t i = 0; i < count; i++) {
        if (session)
            need(healcl_session_receive(session, i, memory + bytes, &error));
        bytes += results[i].bytes;
    }
    return bytes;
}

int main(int argc, char **argv)
{
    if (argc < 6)
        fail("requests TRANSCRIPT FOLDER KINDS REQUESTS SEGMENT [DEVICE]");
    const int kinds = atoi(argv[3]), requests = atoi(argv[4]);
    struct healcl_transcript *transcript = NULL;
    struct healcl_device *device = NULL;
    struct healcl_session *session = NULL;
    if (kinds < 1 || requests <= WARM_UP * kinds)
        fail("there are no requests behind the warm-up");
    need(healcl_transcript_open(argv[1], NULL, &transcript, &error));
    struct file in = make_file(argv[2], bind(NULL, transcript, argv[5], NULL));
    struct file out = make_file(argv[2], receive(NULL, transcript, NULL));
    struct file earlier = make_file(argv[2], out.bytes);
    uint64_t *times = calloc((size_t)requests, sizeof *times);
    if (!times)
        fail("out of memory");
    need(healcl_device_open(argc > 6 ? argv[6] : NULL, &device, &error));
    need(healcl_session_open(transcript, device, NULL, &session, &error));
    if (bind(session, transcript, argv[5], in.memory) == 0)
        fail("no input is in such a segment");
    receive(session, transcript, out.memory);

    struct uploads told = {UINT64_MAX, 0}, given = {UINT64_MAX, 0};
    uint64_t resident = 0, on_device = 0;
    for (int i = 0; i < requests; i++) {
        const int kind = i % kinds;
        read_file(&in, "in", kind);
        memset(out.memory, 0xa5, out.bytes);
        uint64_t before = opencl_calls.bytes;
        need(healcl_session_run(session, &error));
        struct healcl_session_facts facts = healcl_session_facts(session);
        uint64_t bytes = opencl_calls.bytes - before;
        times[i] = facts.nanoseconds;
        if (i == 0)
            printf("request 0: %" PRIu64 " bytes up, %" PRIu64 " given to OpenCL\n",
                   facts.bytes_uploaded, bytes);
        if (i > 0)
            note(&told, facts.bytes_uploaded);
        if (i > WARM_UP * kinds) /* new memory is mapped once, to ask for huge pages */
            note(&given, bytes);
        if (i == WARM_UP * kinds) {
            resident = resident_bytes();
            on_device = facts.device_bytes;
        }
        if (i < kinds) {
            write_file(&out, "out", kind);
            continue;
        }
        read_file(&earlier, "out", kind);
        if (memcmp(out.memory, earlier.memory, out.bytes) != 0)
            fail("a result differs from that of an earlier request with the same inputs");
    }
    printf("others: %" PRIu64 " to %" PRIu64 " bytes up, %" PRIu64 " to %" PRIu64
           " given to OpenCL after the warm-up; inputs have %zu\n",
           told.least, told.most, given.least, given.most, in.bytes);
    bool wrong = told.least != in.bytes || told.most != in.bytes ||
                 given.most > in.bytes + STATUS_BYTES || given.least < in.bytes;
    wrong |= has_grown("memory", resident, resident_bytes());
    wrong |= has_grown("on the device", on_device, healcl_session_facts(session).device_bytes);
    qsort(times + 1, (size_t)requests - 1, sizeof *times, compare);
    printf("%d requests: median %.3f ms, p99 %.3f ms\n", requests,
           (double)times[requests / 2] / 1e6, (double)times[requests - 1 - requests / 100] / 1e6);
    healcl_session_close(session);
    healcl_device_close(device);
    healcl_transcript_close(transcript);
    free(times);
    free(in.memory);
    free(out.memory);
    free(earlier.memory);
    return wrong ? 1 : 0;
}
