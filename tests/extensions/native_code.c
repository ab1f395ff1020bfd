/* Native code of a manifest: out = a, and value at one place of it. */
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

#include "healcl_vendor.h"

/* Records that the library was loaded. */
__attribute__((constructor)) static void note(void)
{
    const char *path = getenv("NATIVE_NOTE");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file)
        (void)fclose(file);
}

healcl_vendor_function copy_and_set;

int copy_and_set(const struct healcl_vendor_call *call, char message[HEALCL_VENDOR_MESSAGE_SIZE])
{
    if (call->version != HEALCL_VENDOR_VERSION || call->argument_count != 4)
        return -1;
    const struct healcl_vendor_tensor *out = call->arguments[0].tensor;
    const struct healcl_vendor_tensor *a = call->arguments[1].tensor;
    const int64_t place = call->arguments[2].integer, value = call->arguments[3].integer;
    const size_t size = sizeof(int64_t);
    if (place < 0 || place >= out->shape[0]) {
        snprintf(message, HEALCL_VENDOR_MESSAGE_SIZE, "place %lld", (long long)place);
        return 7;
    }
    cl_event copied = NULL;
    cl_int code = clEnqueueCopyBuffer(call->queue, a->memory, out->memory, (size_t)a->offset * size,
                                      (size_t)out->offset * size, (size_t)a->shape[0] * size, 0,
                                      NULL, &copied);
    if (code != CL_SUCCESS)
        return code;
    code =
        clEnqueueWriteBuffer(call->queue, out->memory, CL_TRUE,
                             (size_t)(out->offset + place) * size, size, &value, 1, &copied, NULL);
    (void)clReleaseEvent(copied);
    return code;
}
