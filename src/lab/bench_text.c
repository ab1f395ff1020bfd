#include "lab/bench_text.h"

#include <inttypes.h>
#include <string.h>

void write_first_segment(FILE *stream, const char *name)
{
    fprintf(stream, "[\n{\"type\":\"SEGMENT_START\",\"name\":\"%s\"}", name);
}

void write_next_segment(FILE *stream, const char *name)
{
    fprintf(stream, ",\n{\"type\":\"SEGMENT_END\"},\n{\"type\":\"SEGMENT_START\",\"name\":\"%s\"}",
            name);
}

void write_end(FILE *stream)
{
    fputs(",\n{\"type\":\"SEGMENT_END\"}\n]\n", stream);
}

void write_free(FILE *stream, int name)
{
    fprintf(stream, ",\n{\"type\":\"FREE_DEVICE_TENSOR\",\"tensor_name\":%d}", name);
}

/* ---------------------------------------------------------------- operations */

static void write_value(FILE *stream, const char *kind, int64_t value)
{
    fprintf(stream, "{\"arg_type\":\"%s\",\"value\":%" PRId64 "}", kind, value);
}

static void write_shape(FILE *stream, const struct extents *shape)
{
    fputs("{\"arg_type\":\"SHAPE\",\"value\":[", stream);
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        fputs(axis ? "," : "", stream);
        write_value(stream, "INT", shape->size[axis]);
    }
    fputs("]}", stream);
}

static void write_argument(FILE *stream, const struct bench_argument *argument)
{
    switch (argument->kind) {
    case BENCH_ARGUMENT_TENSOR:
        fprintf(stream, "{\"arg_type\":\"DEVICE_TENSOR\",\"value\":{\"inf_name\":%" PRId64 "}}",
                argument->value);
        break;
    case BENCH_ARGUMENT_INT: write_value(stream, "INT", argument->value); break;
    case BENCH_ARGUMENT_SHAPE: write_shape(stream, &argument->shape); break;
    case BENCH_ARGUMENT_DTYPE:
        fprintf(stream, "{\"arg_type\":\"TENSOR_TYPE\",\"value\":\"%s\"}",
                dtype_name(argument->dtype));
        break;
    case BENCH_ARGUMENT_RANGE:
        fprintf(stream,
                "{\"arg_type\":\"SHAPE\",\"value\":[{\"arg_type\":\"ELLIPSIS\",\"value\":null},"
                "{\"arg_type\":\"SLICE\",\"value\":{\"start\":%" PRId64 ",\"stop\":%" PRId64
                ",\"step\":1}}]}",
                argument->first, argument->end);
        break;
    case BENCH_ARGUMENT_NONE:
    case BENCH_ARGUMENT_END: fputs("{\"arg_type\":\"NONE\",\"value\":null}", stream); break;
    }
}

static void begin_operation(FILE *stream, const char *name)
{
    fprintf(stream, ",\n{\"type\":\"DEVICE_OP\",\"op\":{\"name\":\"%s\",\"args\":[", name);
}

static void end_operation(FILE *stream, int out)
{
    struct bench_argument none = BENCH_NONE, tensor = BENCH_TENSOR(out);
    fputs("],\"out\":", stream);
    write_argument(stream, out ? &tensor : &none);
    fputs("}}", stream);
}

void write_operation(FILE *stream, const char *name, int out,
                     const struct bench_argument *arguments)
{
    begin_operation(stream, name);
    for (uint32_t i = 0; arguments[i].kind != BENCH_ARGUMENT_END; i++) {
        fputs(i ? "," : "", stream);
        write_argument(stream, &arguments[i]);
    }
    end_operation(stream, out);
}

/* ---------------------------------------------------------------- payloads */

/* Base64 as it grows: up to two bytes wait for a third. */
struct base64 {
    FILE *stream;
    uint32_t pending, count;
};

static void put_group(const struct base64 *base64, uint32_t group, int digits)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < 4; i++)
        putc(i < digits ? alphabet[group >> (18 - 6 * i) & 63] : '=', base64->stream);
}

static void put_byte(struct base64 *base64, uint8_t byte)
{
    base64->pending = base64->pending << 8 | byte;
    if (++base64->count < 3)
        return;
    put_group(base64, base64->pending, 4);
    base64->pending = base64->count = 0;
}

static void put_rest(const struct base64 *base64)
{
    if (base64->count > 0)
        put_group(base64, base64->pending << 8 * (3 - base64->count), (int)base64->count + 1);
}

/* The header of an .npy file: magic, version 1.0, length, and a Python dict. */
static void put_npy_header(struct base64 *base64, enum dtype dtype, const struct extents *shape)
{
    static const char *const types[DTYPE_COUNT] = {"|i1", "<i4", "<i8"};
    char text[256];
    int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                          types[dtype]);
    for (uint32_t axis = 0; axis < shape->rank; axis++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%" PRId64 ",",
                           shape->size[axis]);
    length += snprintf(text + length, sizeof text - (size_t)length, ")}\n");
    static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    for (size_t i = 0; i < sizeof magic; i++)
        put_byte(base64, magic[i]);
    put_byte(base64, (uint8_t)length);
    put_byte(base64, (uint8_t)(length >> 8));
    for (int i = 0; i < length; i++)
        put_byte(base64, (uint8_t)text[i]);
}

void write_upload(FILE *stream, int out, enum dtype dtype, struct extents shape,
                  const int64_t *values)
{
    struct base64 base64 = {.stream = stream};
    int64_t count = 1;
    for (uint32_t axis = 0; axis < shape.rank; axis++)
        count *= shape.size[axis];
    begin_operation(stream, "host_to_device");
    fputs("{\"arg_type\":\"HOST_TENSOR\",\"value\":{\"tensor_base64\":{\"type\":\"numpy\","
          "\"data\":\"",
          stream);
    put_npy_header(&base64, dtype, &shape);
    for (int64_t i = 0; i < count; i++)
        for (size_t byte = 0; byte < dtype_size(dtype); byte++)
            put_byte(&base64, (uint8_t)((uint64_t)values[i] >> 8 * byte));
    put_rest(&base64);
    fputs("\"}}}", stream);
    end_operation(stream, out);
}
