/* The interface of native code that a vendor's manifest names: docs/VENDORS.md. The code needs no
 * other part of healcl, and is not linked with it. */
#ifndef HEALCL_VENDOR_H
#define HEALCL_VENDOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HEALCL_VENDOR_VERSION = 1, HEALCL_VENDOR_MESSAGE_SIZE = 256 };

/* Handles of OpenCL, by the names that its headers give them.
 * NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
struct healcl_vendor_tensor {
    struct _cl_mem *memory;
    uint32_t element_bytes; /* size of a signed integer, 1, 4 or 8, in the host's byte order */
    uint32_t rank;
    int64_t offset; /* of the first element; in elements, like strides */
    const int64_t *shape, *stride;
};

struct healcl_vendor_argument {
    const struct healcl_vendor_tensor *tensor; /* NULL: the argument is `integer` */
    int64_t integer;
};

struct healcl_vendor_call {
    uint32_t version; /* the caller's HEALCL_VENDOR_VERSION */
    struct _cl_context *context;
    struct _cl_device_id *device;
    struct _cl_command_queue *queue;
    uint32_t argument_count;
    const struct healcl_vendor_argument *arguments; /* in the order of the manifest */
};
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

/* Enqueues all work of a call on its queue before it returns. The work runs after earlier commands
 * on the queue, and later commands see its results. The queue may execute the function's own
 * commands out of order. Everything that `call` points to is valid until the function returns.
 * Returns 0, or a nonzero error code. Then it may write a description of one line to `message`. */
typedef int healcl_vendor_function(const struct healcl_vendor_call *call,
                                   char message[HEALCL_VENDOR_MESSAGE_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
