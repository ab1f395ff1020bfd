#ifndef HEALCL_TESTS_HELPER_DECLARE_H
#define HEALCL_TESTS_HELPER_DECLARE_H

#include "tools/writer.h"

/* Writes an upload without data: a caller brings them. */
static inline void writer_declare(struct writer *writer, const char *out, enum dtype dtype,
                                  const struct layout *shape)
{
    char text[SHAPE_TEXT_SIZE];
    writer_put(writer,
               "%s{\"type\":\"DEVICE_OP\",\"op\":{\"name\":\"host_to_device\",\"args\":["
               "{\"arg_type\":\"HOST_TENSOR\",\"value\":{\"tensor_base64\":"
               "{\"type\":\"numpy\",\"dtype\":\"%s\",\"shape\":%s}}}],"
               "\"out\":{\"arg_type\":\"DEVICE_TENSOR\",\"value\":{\"inf_name\":\"%s\"}}}}",
               writer->length > 0 ? ",\n" : "[\n", dtype_name(dtype),
               layout_shape_text(shape, text), out);
}

#endif
