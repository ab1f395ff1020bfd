#include "lab/transcript_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/view.h"

static bool reserve(struct text *text, size_t more)
{
    if (text->failed)
        return false;
    if (text->length + more + 1 <= text->capacity)
        return true;
    size_t capacity = 2 * text->capacity + more + 1024;
    char *bytes = realloc(text->bytes, capacity);
    if (!bytes) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

enum { PUT_SIZE = 1024 };

void text_put(struct text *text, const char *format, ...)
{
    va_list arguments;
    if (!reserve(text, PUT_SIZE))
        return;
    va_start(arguments, format);
    int length = vsnprintf(text->bytes + text->length, PUT_SIZE, format, arguments);
    va_end(arguments);
    text->length += length < PUT_SIZE ? (size_t)length : PUT_SIZE - 1;
}

void text_begin(struct text *text, const char *operation)
{
    text_put(text, "%s{\"type\":\"DEVICE_OP\",\"op\":{\"name\":\"%s\",\"args\":[",
             text->length > 1 ? ",\n" : "", operation);
}

void text_tensor(struct text *text, const char *name)
{
    text_put(text, "{\"arg_type\":\"DEVICE_TENSOR\",\"value\":{\"inf_name\":\"%s\"}}", name);
}

void text_int(struct text *text, int64_t value)
{
    text_put(text, "{\"arg_type\":\"INT\",\"value\":%" PRId64 "}", value);
}

void text_slice(struct text *text, int64_t start, int64_t stop, int64_t step)
{
    text_put(text,
             "{\"arg_type\":\"SLICE\",\"value\":{\"start\":%" PRId64 ",\"stop\":%" PRId64
             ",\"step\":%" PRId64 "}}",
             start, stop, step);
}

void text_shape(struct text *text, uint32_t rank, const int64_t *shape)
{
    text_put(text, "{\"arg_type\":\"SHAPE\",\"value\":[");
    for (uint32_t axis = 0; axis < rank; axis++) {
        text_put(text, axis ? "," : "");
        text_int(text, shape[axis]);
    }
    text_put(text, "]}");
}

static void put_base64(struct text *text, const unsigned char *bytes, size_t count)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (!reserve(text, (count + 2) / 3 * 4))
        return;
    char *next = text->bytes + text->length;
    for (size_t i = 0; i < count; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16;
        group |= i + 1 < count ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= i + 2 < count ? (uint32_t)bytes[i + 2] : 0;
        *next++ = alphabet[group >> 18];
        *next++ = alphabet[group >> 12 & 63];
        *next++ = i + 1 < count ? alphabet[group >> 6 & 63] : '=';
        *next++ = i + 2 < count ? alphabet[group & 63] : '=';
    }
    text->length = (size_t)(next - text->bytes);
    *next = 0;
}

/* A .npy file of version 1.0: https://numpy.org/doc/stable/reference/generated/numpy.lib.format */
void text_payload(struct text *text, enum dtype dtype, const struct layout *shape, bool fortran,
                  const void *packed)
{
    static const char *const types[] = {"|i1", "<i4", "<i8"};
    size_t size = dtype_size(dtype), count = (size_t)layout_elements(shape);
    char header[640], sizes[400] = "";
    for (uint32_t axis = 0; axis < shape->rank; axis++)
        sprintf(sizes + strlen(sizes), "%" PRId64 ", ", shape->shape[axis]);
    int length = snprintf(header + 10, sizeof header - 10,
                          "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n", types[dtype],
                          fortran ? "True" : "False", sizes);
    memcpy(header, "\x93NUMPY\x01\0", 8);
    header[8] = (char)(length & 0xff);
    header[9] = (char)(length >> 8);
    size_t head = (size_t)length + 10, bytes = head + count * size;
    unsigned char *file = malloc(bytes);
    if (!file) {
        text->failed = true;
        return;
    }
    memcpy(file, header, head);
    struct layout order = *shape; /* where the file has the elements */
    int64_t stride = 1;
    for (uint32_t axis = 0; fortran && axis < order.rank; axis++) {
        order.stride[axis] = stride;
        stride *= order.shape[axis];
    }
    view_scatter(&order, size, file + head, packed);
    text_put(text, "{\"arg_type\":\"HOST_TENSOR\",\"value\":{\"tensor_base64\":{\"type\":\"numpy\","
                   "\"data\":\"");
    put_base64(text, file, bytes);
    text_put(text, "\"}}}");
    free(file);
}
