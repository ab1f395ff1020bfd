/*
 * The interface of native code in a vendor's manifest: docs/VENDORS.md. It needs nothing else of
 * healcl, and is not linked with it.
 */
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
    uint32_t element_bytes; /* 1, 4 or 8: signed integers in the host's byte order */
    uint32_t rank;
    int64_t offset; /* of the first element, counted in elements, as strides are */
    const int64_t *shape, *stride;
};

struct healcl_vendor_argument {
    const struct healcl_vendor_tensor *tensor; /* NULL: an integer */
    int64_t integer;
};

struct healcl_vendor_call {
    uint32_t version; /* HEALCL_VENDOR_VERSION */
    struct _cl_context *context;
    struct _cl_device_id *device;
    struct _cl_command_queue *queue;
    uint32_t argument_count;
    const struct healcl_vendor_argument *arguments; /* as the manifest lists them */
};
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

/*
 * Enqueues all work of a call on its queue before it returns. Earlier commands on the queue come
 * first, later ones see the results. The queue may be out of order among the function's own
 * commands. Everything that call points to lives until the function returns. Returns 0, or an
 * error, which message, one line, may describe.
 */
typedef int healcl_vendor_function(const struct healcl_vendor_call *call,
                                   char message[HEALCL_VENDOR_MESSAGE_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
