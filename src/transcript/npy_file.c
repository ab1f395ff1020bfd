/* Whole .npy files. They are read in the same way as raw payloads, so that elements are converted
 * and checked in only one place. */
#include <stdio.h>
#include <stdlib.h>

#include "core/file.h"
#include "core/new_file.h"
#include "core/numbers.h"
#include "transcript/npy.h"
#include "transcript/payload.h"

static enum healcl_status read_elements(const char *npy, size_t length, enum dtype dtype,
                                        const struct layout *layout, void *array,
                                        struct healcl_error *error)
{
    struct payload payload;
    char has[SHAPE_TEXT_SIZE], wanted[SHAPE_TEXT_SIZE];
    TRY(payload_parse_raw(npy, length, &payload, error));
    if (!layout_same_shape(&payload.layout, layout))
        REFUSE(error, "its shape is %s, not %s", layout_shape_text(&payload.layout, has),
               layout_shape_text(layout, wanted));
    return payload_read(&payload, dtype, array, error);
}

enum healcl_status npy_read_file(const char *path, enum dtype dtype, const struct layout *layout,
                                 void *array, struct healcl_error *error)
{
    unsigned char *bytes;
    size_t length = 0;
    TRY(file_read(path, SIZE_MAX / 2, &bytes, &length, error));
    enum healcl_status status =
        read_elements((const char *)bytes, length, dtype, layout, array, error);
    if (status == HEALCL_REFUSED)
        error_prefix(error, PATH_FORMAT ": ", path);
    free(bytes);
    return status;
}

/* ---------------------------------------------------------------- writing */

static void write_little_endian(FILE *stream, const void *data, size_t count, size_t size)
{
    if (size == 1 || host_is_little_endian()) {
        fwrite(data, size, count, stream);
        return;
    }
    const unsigned char *bytes = data;
    for (size_t i = 0; i < count; i++)
        for (size_t byte = size; byte-- > 0;)
            putc(bytes[i * size + byte], stream);
}

enum healcl_status npy_write_file(const char *path, enum dtype dtype, const struct layout *shape,
                                  const void *array, struct healcl_error *error)
{
    struct new_file file;
    char header[NPY_HEADER_SIZE];
    TRY(new_file_open(&file, path, error));
    fwrite(header, 1, npy_write_header(dtype, shape, false, header), file.stream);
    write_little_endian(file.stream, array, (size_t)layout_elements(shape), dtype_size(dtype));
    return new_file_commit(&file, error);
}
