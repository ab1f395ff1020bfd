#include "tools/writer.h"

#include <stdarg.h>

#include "core/numbers.h"
#include "tools/xmalloc.h"
#include "transcript/base64.h"

static const char DIGITS[] = "-0123456789";

/* Makes room for `more` characters and a terminator. */
static void reserve(struct writer *writer, size_t more)
{
    if (writer->length + more < writer->capacity)
        return;
    writer->capacity = 2 * writer->capacity + more + 1;
    writer->bytes = xrealloc(writer->bytes, writer->capacity, 1);
}

static void put_list(struct writer *writer, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    size_t length = (size_t)vsnprintf(NULL, 0, format, list);
    reserve(writer, length);
    vsnprintf(writer->bytes + writer->length, length + 1, format, again);
    writer->length += length;
    va_end(again);
}

void writer_put(struct writer *writer, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    put_list(writer, format, list);
    va_end(list);
}

/* ---------------------------------------------------------------- arguments */

/* Missing bounds are null. */
static void put_slice(struct writer *writer, const char *text)
{
    static const char *const bounds[] = {"{\"start\"", ",\"stop\"", ",\"step\""};
    writer_put(writer, "{\"arg_type\":\"SLICE\",\"value\":");
    for (int i = 0; i < 3; i++) {
        const size_t length = strspn(text, DIGITS);
        writer_put(writer, "%s:%.*s", bounds[i], length ? (int)length : 4, length ? text : "null");
        text += length + (text[length] == ':');
    }
    writer_put(writer, "}}");
}

static void put_item(struct writer *writer, const char *item)
{
    size_t length = strspn(item, DIGITS);
    if (*item == '.')
        writer_put(writer, "{\"arg_type\":\"ELLIPSIS\",\"value\":null}");
    else if (item[length] == ':')
        put_slice(writer, item);
    else
        writer_put(writer, "{\"arg_type\":\"INT\",\"value\":%.*s}", (int)length, item);
}

/* Returns the text after the list. */
static const char *put_items(struct writer *writer, const char *list)
{
    const char *item = list + 1;
    writer_put(writer, "{\"arg_type\":\"SHAPE\",\"value\":[");
    while (*item && !strchr(")]", *item)) {
        writer_put(writer, item > list + 1 ? "," : "");
        put_item(writer, item);
        item += strcspn(item, ",)]");
        item += strspn(item, ", ");
    }
    writer_put(writer, "]}");
    return item + (*item != 0);
}

/* Returns the text after the argument. */
static const char *put_argument(struct writer *writer, const char *word)
{
    size_t length = strcspn(word, " ");
    if (*word == '[' || *word == '(')
        return put_items(writer, word);
    if (length == 4 && memcmp(word, "none", 4) == 0)
        writer_put(writer, "{\"arg_type\":\"NONE\",\"value\":null}");
    else if (*word == ':')
        writer_put(writer, "{\"arg_type\":\"TENSOR_TYPE\",\"value\":\"%.*s\"}", (int)length - 1,
                   word + 1);
    else if (strchr(DIGITS, *word))
        put_item(writer, word);
    else
        writer_put(writer, "{\"arg_type\":\"DEVICE_TENSOR\",\"value\":{\"inf_name\":\"%.*s\"}}",
                   (int)length, word);
    return word + length;
}

/* Writes a .npy file of version 1.0. held: the dtype in memory. */
static void put_payload(struct writer *writer, enum dtype dtype, const struct layout *layout,
                        bool fortran, enum dtype held, const void *memory)
{
    char header[NPY_HEADER_SIZE];
    struct layout order = *layout; /* of the axes in the file */
    for (uint32_t axis = 0; fortran && axis < order.rank; axis++) {
        order.shape[axis] = layout->shape[order.rank - 1 - axis];
        order.stride[axis] = layout->stride[order.rank - 1 - axis];
    }
    size_t size = dtype_size(dtype), head = npy_write_header(dtype, layout, fortran, header);
    size_t bytes = head + (size_t)layout_elements(layout) * size;
    unsigned char *file = xmalloc(bytes), *next = file + head;
    const struct layout *layouts[] = {&order};
    struct walk walk;
    memcpy(file, header, head);
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk)) {
        uint64_t value = (uint64_t)dtype_load(held, memory, walk.position[0]);
        for (size_t byte = 0; byte < size; byte++)
            *next++ = (unsigned char)(value >> 8 * byte);
    }
    writer_put(writer, "{\"arg_type\":\"HOST_TENSOR\",\"value\":{\"tensor_base64\":"
                       "{\"type\":\"numpy\",\"data\":\"");
    reserve(writer, base64_length(bytes));
    base64_encode(file, bytes, writer->bytes + writer->length);
    writer->length += base64_length(bytes);
    free(file);
    writer_put(writer, "\"}}}");
}

/* ---------------------------------------------------------------- entries */

static void begin_entry(struct writer *writer, const char *type)
{
    writer_put(writer, "%s{\"type\":\"%s\"", writer->length > 0 ? ",\n" : "[\n", type);
}

static void begin_operation(struct writer *writer, const char *operation)
{
    begin_entry(writer, "DEVICE_OP");
    writer_put(writer, ",\"op\":{\"name\":\"%s\",\"args\":[", operation);
}

static void end_operation(struct writer *writer, const char *out)
{
    writer_put(writer, "],\"out\":");
    put_argument(writer, out ? out : "none");
    writer_put(writer, "}}");
}

void writer_call(struct writer *writer, const char *out, const char *operation,
                 const char *arguments, ...)
{
    struct writer words = {0};
    va_list list;
    va_start(list, arguments);
    put_list(&words, arguments, list);
    va_end(list);
    begin_operation(writer, operation);
    for (const char *word = words.bytes ? words.bytes : ""; *word; word += strspn(word, " ")) {
        writer_put(writer, word > words.bytes ? "," : "");
        word = put_argument(writer, word);
    }
    end_operation(writer, out);
    free(words.bytes);
}

void writer_upload(struct writer *writer, const char *out, enum dtype dtype,
                   const struct layout *layout, bool fortran, enum dtype held, const void *memory)
{
    begin_operation(writer, "host_to_device");
    put_payload(writer, dtype, layout, fortran, held, memory);
    end_operation(writer, out);
}

void writer_download(struct writer *writer, const char *name, enum dtype dtype,
                     const struct layout *layout, const void *expected)
{
    begin_operation(writer, "device_to_host");
    put_argument(writer, name);
    writer_put(writer, "],\"out\":");
    if (expected)
        put_payload(writer, dtype, layout, false, dtype, expected);
    else
        put_argument(writer, "none");
    writer_put(writer, "}}");
}

void writer_entry(struct writer *writer, const char *type, const char *key, const char *value)
{
    begin_entry(writer, type);
    if (key)
        writer_put(writer, ",\"%s\":\"%s\"", key, value);
    writer_put(writer, "}");
}

void writer_next_segment(struct writer *writer, const char *name)
{
    writer_entry(writer, "SEGMENT_END", NULL, NULL);
    writer_entry(writer, "SEGMENT_START", "name", name);
}

/* ---------------------------------------------------------------- views */

/* Moves the axes of a tensor into ascending order: axis i of it is called order[i]. */
static void order_axes(struct writer *writer, const char *name, uint32_t count, uint32_t *order)
{
    for (uint32_t to = 0; to < count; to++) {
        uint32_t from = to;
        for (uint32_t i = to; i < count; i++)
            from = order[i] < order[from] ? i : from;
        if (from == to)
            continue;
        uint32_t axis = order[from];
        writer_call(writer, name, "moveaxis", "%s %" PRIu32 " %" PRIu32, name, from, to);
        memmove(order + to + 1, order + to, (from - to) * sizeof *order);
        order[to] = axis;
    }
}

/* How to make a view from a storage of one axis: take it from `offset` on, reshape it to extents,
 * slice with steps, and move its axes. Axes that repeat elements come last. */
struct recipe {
    uint32_t order[LAYOUT_RANK]; /* axes by descending strides */
    int64_t extent[LAYOUT_RANK], step[LAYOUT_RANK];
    int64_t total; /* elements from `offset` on */
};

static int64_t own_stride(const struct layout *layout, uint32_t axis)
{
    return layout->shape[axis] > 1 ? layout->stride[axis] : 0;
}

/* Returns whether the view can be made this way. */
static bool find_recipe(const struct layout *layout, struct recipe *recipe)
{
    int64_t grain = 0; /* elements of the storage per index of the axis */
    uint32_t innermost = 0;
    bool fits = true;
    recipe->total = 1;
    for (uint32_t axis = 0, at; axis < layout->rank; axis++) {
        for (at = axis;
             at > 0 && own_stride(layout, recipe->order[at - 1]) < own_stride(layout, axis); at--)
            recipe->order[at] = recipe->order[at - 1];
        recipe->order[at] = axis;
    }
    for (uint32_t i = 0; i < layout->rank; i++) {
        const int64_t stride = own_stride(layout, recipe->order[i]), outer = grain;
        recipe->step[i] = recipe->extent[i] = 1;
        if (stride == 0)
            continue;
        grain = greatest_common_divisor(stride, grain);
        recipe->step[i] = stride / grain;
        const int64_t span = (layout->shape[recipe->order[i]] - 1) * recipe->step[i] + 1;
        recipe->extent[i] = outer == 0 ? span : outer / grain;
        recipe->total *= recipe->extent[i];
        fits = fits && span <= recipe->extent[i];
        innermost = i;
    }
    if (grain > 0) {
        recipe->extent[innermost] *= grain;
        recipe->step[innermost] *= grain;
        recipe->total *= grain;
    }
    return fits;
}

int64_t view_end(const struct layout *layout)
{
    struct recipe recipe;
    (void)find_recipe(layout, &recipe);
    return layout->offset + recipe.total;
}

bool view_put(struct writer *writer, const char *name, const char *storage,
              const struct layout *layout)
{
    char text[SHAPE_TEXT_SIZE], index[64 * LAYOUT_RANK] = "";
    struct layout extents = {.rank = layout->rank};
    struct recipe recipe;
    bool is_whole = true;
    int used = 0;
    if (!find_recipe(layout, &recipe))
        return false;
    for (uint32_t i = 0; i < layout->rank; i++) {
        const uint32_t axis = recipe.order[i];
        const int64_t own =
            own_stride(layout, axis) > 0 || layout->shape[axis] == 0 ? layout->shape[axis] : 1;
        extents.shape[i] = recipe.extent[i];
        is_whole = is_whole && own == recipe.extent[i];
        used += sprintf(index + used, ":%" PRId64 ":%" PRId64 ",",
                        own > 0 ? (own - 1) * recipe.step[i] + 1 : 0, recipe.step[i]);
    }
    writer_call(writer, name, "get_slice", "%s [%" PRId64 ":%" PRId64 "]", storage, layout->offset,
                layout->offset + recipe.total);
    writer_call(writer, name, "reshape", "%s %s", name, layout_shape_text(&extents, text));
    if (!is_whole)
        writer_call(writer, name, "get_slice", "%s [%s]", name, index);
    order_axes(writer, name, layout->rank, recipe.order);
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        if (layout->shape[axis] > 1 && layout->stride[axis] == 0)
            writer_call(writer, name, "expand", "%s %" PRIu32 " %" PRId64, name, axis,
                        layout->shape[axis]);
    return true;
}

char *writer_finish(struct writer *writer)
{
    writer_put(writer, writer->length > 0 ? "\n]\n" : "[]\n");
    return writer->bytes;
}
