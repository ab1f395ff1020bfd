/* SPDX-License-Identifier: Apache-2.0 */
#include "native.h"

#include <math.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/hash.h"
#include "core/new_file.h"

enum {
    ARGUMENTS_MAX = 64, /* more than any operation takes */
    WAIT_NANOSECONDS = 50000000,
};

static struct healcl_argument argument_of(const int64_t words[2])
{
    uint32_t count = (uint32_t)(words[0] >> 8);
    void *address = (void *)(intptr_t)words[1]; // NOLINT(performance-no-int-to-ptr)
    struct healcl_argument argument = healcl_no_argument();
    switch ((enum healcl_argument_kind)(words[0] & 0xff)) {
    case HEALCL_ARGUMENT_TENSOR: return healcl_tensor_argument(address);
    case HEALCL_ARGUMENT_INT: return healcl_int_argument(words[1]);
    case HEALCL_ARGUMENT_SHAPE: return healcl_shape_argument(count, address);
    case HEALCL_ARGUMENT_INDEX: return healcl_index_argument(count, address);
    case HEALCL_ARGUMENT_DTYPE: return healcl_dtype_argument((enum healcl_dtype)words[1]);
    case HEALCL_ARGUMENT_NONE: break;
    }
    return argument;
}

intptr_t native_call(struct healcl_queue *queue, const char *operation, size_t count,
                     const char *words, bool wants_result, struct healcl_error *error)
{
    struct healcl_argument arguments[ARGUMENTS_MAX];
    struct healcl_tensor *result = NULL;
    for (size_t i = 0; i < count && i < ARGUMENTS_MAX; i++) {
        int64_t pair[2];
        memcpy(pair, words + i * sizeof pair, sizeof pair);
        arguments[i] = argument_of(pair);
    }
    enum healcl_status status =
        healcl_call(queue, operation, count, arguments, wants_result ? &result : NULL, error);
    return status == HEALCL_OK ? (intptr_t)result : -1;
}

void native_release(intptr_t tensor)
{
    healcl_tensor_release((struct healcl_tensor *)tensor); // NOLINT(performance-no-int-to-ptr)
}

struct native_event {
    sem_t semaphore;
};

struct native_event *native_event_new(void)
{
    struct native_event *event = malloc(sizeof *event);
    if (event && sem_init(&event->semaphore, 0, 0) != 0) {
        free(event);
        event = NULL;
    }
    return event;
}

void native_event_free(struct native_event *event)
{
    if (event)
        (void)sem_destroy(&event->semaphore);
    free(event);
}

static void set_event(void *event, enum healcl_status status)
{
    (void)status;
    (void)sem_post(&((struct native_event *)event)->semaphore);
}

enum healcl_status native_session_start(struct healcl_session *session, size_t first, size_t count,
                                        struct native_event *event, struct healcl_error *error)
{
    return healcl_session_start(session, first, count, set_event, event, error);
}

bool native_event_wait(struct native_event *event)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NANOSECONDS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return sem_timedwait(&event->semaphore, &until) == 0;
}

bool native_queue_settled(struct healcl_queue *queue)
{
    struct timespec pause = {0, 10000};
    for (long waited = 0; waited < WAIT_NANOSECONDS; waited += pause.tv_nsec) {
        if (healcl_queue_poll(queue))
            return true;
        (void)nanosleep(&pause, NULL);
        if (pause.tv_nsec < WAIT_NANOSECONDS / 50)
            pause.tv_nsec += pause.tv_nsec / 4;
    }
    return false;
}

struct native_file {
    struct new_file file;
};

enum healcl_status native_file_open(const char *path, struct native_file **file,
                                    struct healcl_error *error)
{
    *file = calloc(1, sizeof **file);
    NEED_MEMORY(*file, error);
    return new_file_open(&(*file)->file, path, error);
}

bool native_file_write(struct native_file *file, const char *data, size_t size)
{
    return fwrite(data, 1, size, file->file.stream) == size;
}

bool native_file_sync(struct native_file *file)
{
    FILE *stream = file->file.stream;
    return fflush(stream) == 0 && !ferror(stream) && fsync(fileno(stream)) == 0;
}

enum healcl_status native_file_commit(struct native_file *file, struct healcl_error *error)
{
    return new_file_commit(&file->file, error);
}

void native_file_free(struct native_file *file)
{
    if (file)
        new_file_discard(&file->file);
    free(file);
}

bool native_hash(const char *header, size_t header_size, const char *elements, size_t size,
                 char *hash)
{
    return hash_joined(header, header_size, elements, size, hash);
}

static void invert(double *restrict re, double *restrict im, const double *root, size_t n,
                   double scale)
{
    for (size_t gap = 1; 4 * gap <= n; gap *= 2)
        for (size_t first = 0; first < n / 2; first += 2 * gap, root += 2)
            for (size_t i = first; i < first + gap; i++) {
                const double x = re[i] - re[i + gap], y = im[i] - im[i + gap];
                re[i] += re[i + gap];
                im[i] += im[i + gap];
                re[i + gap] = x * root[0] - y * root[1];
                im[i + gap] = x * root[1] + y * root[0];
            }
    /* The last stage: the other half has the conjugates. */
    const double factor = scale / (double)n, turned = root[1] * factor;
    for (size_t i = 0; i < n / 2; i++) {
        re[i] = (re[i] + re[i]) * factor;
        im[i] = -(im[i] + im[i]) * turned;
    }
}

double native_encode(double *values, int64_t *rounded, const double *roots, size_t rows, size_t n,
                     double scale)
{
    double largest = 0;
    for (size_t row = 0; row < rows; row++)
        invert(values + row * n, values + row * n + n / 2, roots, n, scale);
    for (size_t i = 0; i < rows * n; i++) {
        const double value = values[i], size = fabs(value);
        const double whole = size < 0x1p52 ? (double)(int64_t)value : value;
        largest = size > largest ? size : isnan(value) ? INFINITY : largest;
        values[i] = whole + (value - whole >= 0.5) - (value - whole <= -0.5);
        rounded[i] = size < 0x1p62 ? (int64_t)values[i] : 0;
    }
    return largest;
}

bool native_cancelled(void *context)
{
    static _Thread_local struct timespec asked;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if ((now.tv_sec - asked.tv_sec) * 1000000000 + now.tv_nsec - asked.tv_nsec < WAIT_NANOSECONDS)
        return false;
    asked = now;
    return python_cancelled(context);
}
