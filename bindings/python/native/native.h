/* SPDX-License-Identifier: Apache-2.0
 * Adds to healcl.h calls with few conversions, and waits that end now and then, so that Python can
 * look for signals. All run without Python's lock. */
#ifndef HEALCL_PYTHON_NATIVE_H
#define HEALCL_PYTHON_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "healcl.h"

/*
 * healcl_call with count arguments, of which words holds two int64_t each. The first is an
 * enum healcl_argument_kind, plus 256 times the number of a shape's or an index's items. The second
 * is an integer, a dtype, or the address of a tensor or of the items. Returns the address of the
 * result's handle if that is wanted and there is one, else 0; -1 where *error says why.
 */
intptr_t native_call(struct healcl_queue *queue, const char *operation, size_t count,
                     const char *words, bool wants_result, struct healcl_error *error);

/* healcl_tensor_release of a handle's address. */
void native_release(intptr_t tensor);

/* An event that a thread waits for, and Python may interrupt. NULL: no memory. */
struct native_event;
struct native_event *native_event_new(void);
void native_event_free(struct native_event *event);

/* healcl_session_start, which sets the event once the run has ended. */
enum healcl_status native_session_start(struct healcl_session *session, size_t first, size_t count,
                                        struct native_event *event, struct healcl_error *error);

/* Waits up to 50 ms for the event, and takes it; whether it came. */
bool native_event_wait(struct native_event *event);

/* Polls up to 50 ms whether healcl_queue_wait would return at once. */
bool native_queue_settled(struct healcl_queue *queue);

/* A file that appears whole or not at all, as the program's reports do: src/core/new_file.h, where
 * the errors are told. */
struct native_file;
enum healcl_status native_file_open(const char *path, struct native_file **file,
                                    struct healcl_error *error);

/* Whether all was written, as far as is known. */
bool native_file_write(struct native_file *file, const char *data, size_t size);

/* Whether the disk has all that was written. */
bool native_file_sync(struct native_file *file);

/* Closes the file, and gives it its name. */
enum healcl_status native_file_commit(struct native_file *file, struct healcl_error *error);

/* Removes a file that has not been committed, and frees it. */
void native_file_free(struct native_file *file);

/*
 * Coefficients of CKKS plaintexts, with the floating-point operations of SEAL 4's CKKSEncoder in
 * its order: an inverse FFT. It takes half the work: values at mirrored places are conjugates, in
 * each stage exactly, so those of the first half determine all.
 *
 * values   [rows][n], n a power of two, at least 2: in each row the real parts of the values at
 *          places 0 to n/2 - 1 in bit-reversed order, then the imaginary ones. Replaced by the n
 *          coefficients, times scale, rounded to integers, halves away from 0
 * rounded  [rows][n]: the same, but for those of at least 2^62 in size, which are 0
 * roots    [n/2][2]: real and imaginary parts of the roots of unity, stage by stage
 *
 * Returns the size of the largest coefficient before rounding; infinity if one is no number.
 */
double native_encode(double *values, int64_t *rounded, const double *roots, size_t rows, size_t n,
                     double scale);

/* The hash of a pack's payload, in 33 bytes: of a .npy file's header and elements. False: no
 * memory. */
bool native_hash(const char *header, size_t header_size, const char *elements, size_t size,
                 char *hash);

/* For struct healcl_observer: asks python_cancelled every 50 ms. */
bool native_cancelled(void *context);

/* Functions in Python. context: a handle of cffi's. */
void python_difference(void *context, const char *line);
void python_warning(void *context, const char *line);
bool python_cancelled(void *context);

#endif
