#include "helper_place.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *arrangement_name(enum arrangement arrangement)
{
    static const char *const names[] = {"contiguous", "offset",   "strided", "transposed",
                                        "broadcast",  "in place", "overlap", "random"};
    return names[arrangement];
}

/* ---------------------------------------------------------------- which tensors */

static bool is_input(const struct problem *problem, int i)
{
    return problem->tensors[i].present && i != problem->out;
}

/* Whether any values will do, so that other tensors may share them. */
static bool is_free(const struct problem *problem, int i)
{
    return problem->tensors[i].contents == CONTENTS_VALUES;
}

static bool may_repeat(const struct problem_tensor *tensor)
{
    return tensor->contents != CONTENTS_COPRIME && tensor->contents != CONTENTS_PERMUTATION;
}

/* The axis that an input repeats in ARRANGEMENT_BROADCAST, or -1. */
static int repeated_axis(const struct problem_tensor *tensor, uint64_t variant)
{
    int found[LAYOUT_RANK], count = 0;
    if (!may_repeat(tensor))
        return -1;
    for (uint32_t axis = 0; axis < tensor->shape.rank; axis++)
        if (tensor->shape.shape[axis] > 1)
            found[count++] = (int)axis;
    return count ? found[variant % (uint64_t)count] : -1;
}

/* An input of the output's dtype, of its shape too where that is asked for; those of any values
 * first. */
static int partner_of_out(const struct problem *problem, bool same_shape)
{
    if (problem->out < 0)
        return -1;
    const struct problem_tensor *out = &problem->tensors[problem->out];
    for (int free = 1; free >= 0; free--)
        for (int i = 0; i < PARAMETERS_MAX; i++)
            if (is_input(problem, i) && is_free(problem, i) == (free == 1) &&
                problem->tensors[i].dtype == out->dtype &&
                problem->tensors[i].contents != CONTENTS_PERMUTATION &&
                layout_elements(&problem->tensors[i].shape) > 0 &&
                (!same_shape || layout_same_shape(&problem->tensors[i].shape, &out->shape)))
                return i;
    return -1;
}

const char *arrangement_excluded(const struct problem *problem, enum arrangement arrangement)
{
    int tensors = 0, repeats = 0;
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        tensors += problem->tensors[i].present;
        repeats += is_input(problem, i) && repeated_axis(&problem->tensors[i], 0) >= 0;
    }
    if (arrangement != ARRANGEMENT_CONTIGUOUS && tensors == 0)
        return "no tensor among the arguments";
    if (arrangement == ARRANGEMENT_BROADCAST && repeats == 0)
        return "no input to repeat";
    if (arrangement == ARRANGEMENT_IN_PLACE || arrangement == ARRANGEMENT_OVERLAP) {
        if (problem->out < 0)
            return "nothing is written";
        if (partner_of_out(problem, false) < 0)
            return "no input of the output's dtype";
        if (arrangement == ARRANGEMENT_IN_PLACE && partner_of_out(problem, true) < 0)
            return "no input of the output's shape";
    }
    return NULL;
}

/* ---------------------------------------------------------------- layouts */

static void place_init(struct place *place)
{
    memset(place, 0, sizeof *place);
    for (uint32_t axis = 0; axis < LAYOUT_RANK; axis++) {
        place->order[axis] = axis;
        place->step[axis] = 1;
    }
    place->flat_step = 1;
}

static int64_t span_of(int64_t size, int64_t step)
{
    return size > 0 ? (size - 1) * step + 1 : 0;
}

/* The sizes of a tensor in the order of its storage, repeated axes once. */
static struct layout stored_shape(const struct place *place, const struct problem_tensor *tensor)
{
    int64_t shape[LAYOUT_RANK];
    struct layout stored;
    uint32_t rank = tensor->shape.rank;
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = place->repeated[place->order[i]] ? 1 : tensor->shape.shape[place->order[i]];
    if (layout_init(&stored, rank, shape, 8, NULL) != HEALCL_OK)
        abort();
    return stored;
}

/* The shape of a storage that holds just this tensor. */
static struct layout storage_shape(const struct place *place, const struct problem_tensor *tensor)
{
    int64_t shape[LAYOUT_RANK];
    struct layout layout, stored = stored_shape(place, tensor);
    uint32_t rank = 0;
    if (place->leading)
        shape[rank++] = 3;
    for (uint32_t i = 0; i < stored.rank; i++) {
        uint32_t axis = place->order[i];
        shape[rank++] =
            place->before[axis] + span_of(stored.shape[i], place->step[axis]) + place->after[axis];
    }
    if (layout_init(&layout, rank, shape, 8, NULL) != HEALCL_OK)
        abort();
    return layout;
}

static void set_layout(struct place *place, const struct problem_tensor *tensor,
                       const struct layout *storage)
{
    struct layout stored = stored_shape(place, tensor);
    place->layout = tensor->shape;
    place->layout.offset = place->flat ? place->start : place->leading ? storage->stride[0] : 0;
    for (uint32_t i = 0; i < stored.rank; i++) {
        uint32_t axis = place->order[i];
        int64_t stride = place->flat ? stored.stride[i] * place->flat_step
                                     : storage->stride[i + place->leading] * place->step[axis];
        if (!place->flat)
            place->layout.offset += place->before[axis] * storage->stride[i + place->leading];
        place->layout.stride[axis] = place->repeated[axis] ? 0 : stride;
    }
}

/* The tensor's own storage. */
static void finish_alone(struct placement *placement, const struct problem *problem, int i)
{
    struct place *place = &placement->places[i];
    struct placed_storage *storage = &placement->storages[placement->storage_count];
    storage->dtype = problem->tensors[i].dtype;
    storage->shape = storage_shape(place, &problem->tensors[i]);
    place->storage = placement->storage_count++;
    set_layout(place, &problem->tensors[i], &storage->shape);
}

/* The output and the given inputs in a storage of one axis, the largest that any of them needs. */
static void finish_flat(struct placement *placement, const struct problem *problem,
                        const bool *together)
{
    struct placed_storage *storage = &placement->storages[placement->storage_count];
    int64_t end = 0;
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        struct place *place = &placement->places[i];
        if (!together[i])
            continue;
        struct layout stored = stored_shape(place, &problem->tensors[i]);
        int64_t last = place->start + span_of(layout_elements(&stored), place->flat_step);
        end = last > end ? last : end;
        place->flat = true;
        place->storage = placement->storage_count;
        set_layout(place, &problem->tensors[i], NULL);
    }
    end += 3;
    storage->dtype = problem->tensors[problem->out].dtype;
    if (layout_init(&storage->shape, 1, &end, 8, NULL) != HEALCL_OK)
        abort();
    placement->storage_count++;
    placement->shared = true;
}

/* ---------------------------------------------------------------- arrangements */

static void reverse_axes(struct place *place, uint32_t rank)
{
    for (uint32_t axis = 0; axis < rank; axis++)
        place->order[axis] = rank - 1 - axis;
}

static void arrange(struct place *place, const struct problem_tensor *tensor, bool is_out,
                    enum arrangement arrangement, uint64_t variant)
{
    uint32_t rank = tensor->shape.rank;
    switch (arrangement) {
    case ARRANGEMENT_OFFSET:
        place->leading = rank == 0;
        place->before[0] = place->after[0] = 1;
        break;
    case ARRANGEMENT_STRIDED:
        place->leading = rank == 0;
        if (rank > 0) {
            place->step[rank - 1] = 2;
            place->before[rank - 1] = place->after[rank - 1] = 1;
        }
        break;
    case ARRANGEMENT_TRANSPOSED:
        reverse_axes(place, rank);
        place->after[0] = 1;
        break;
    case ARRANGEMENT_BROADCAST:
        if (!is_out && repeated_axis(tensor, variant) >= 0)
            place->repeated[repeated_axis(tensor, variant)] = true;
        break;
    default: break;
    }
}

static void share_place(struct placement *placement, const struct problem *problem, int with_out)
{
    finish_alone(placement, problem, problem->out);
    placement->places[with_out] = placement->places[problem->out];
    placement->shared = true;
}

/* ---------------------------------------------------------------- random ones */

/* Axes with room around them: each makes the storage several times as large. */
enum { ROOMY_AXES = 4 };

static void arrange_any(struct place *place, const struct problem_tensor *tensor, bool is_out,
                        struct random *random)
{
    uint32_t rank = tensor->shape.rank;
    if (random_once_in(random, 4))
        return;
    int roomy = 0;
    place->leading = rank < MAX_RANK && random_once_in(random, 3);
    for (uint32_t axis = 0; axis < rank; axis++) {
        bool repeats = !is_out && may_repeat(tensor) && random_once_in(random, 6);
        if (repeats && tensor->shape.shape[axis] > 0)
            place->repeated[axis] = true;
        else if (random_once_in(random, 2) && roomy++ < ROOMY_AXES) {
            place->step[axis] = random_between(random, 1, 3);
            place->before[axis] = random_between(random, 0, 2);
            place->after[axis] = random_between(random, 0, 2);
        }
    }
    if (random_once_in(random, 2))
        return;
    for (uint32_t axis = rank; axis-- > 1;) {
        uint32_t other = (uint32_t)random_between(random, 0, axis), swapped = place->order[axis];
        place->order[axis] = place->order[other];
        place->order[other] = swapped;
    }
}

/* The output, one input whose contents matter, and any others: anywhere in one storage. */
static void share_any(struct placement *placement, const struct problem *problem, bool *together,
                      struct random *random)
{
    const struct problem_tensor *out = &problem->tensors[problem->out];
    bool has_critical = false;
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        bool shares = i == problem->out ||
                      (is_input(problem, i) && problem->tensors[i].dtype == out->dtype &&
                       (is_free(problem, i) || !has_critical) && random_once_in(random, 2));
        if (!shares)
            continue;
        struct place *place = &placement->places[i];
        has_critical = has_critical || !is_free(problem, i);
        together[i] = true;
        place->leading = false;
        for (uint32_t axis = 0; axis < LAYOUT_RANK; axis++) {
            place->before[axis] = place->after[axis] = 0;
            place->step[axis] = 1;
        }
        place->start = random_between(random, 0, random_once_in(random, 2) ? 3 : 60);
        place->flat_step = random_once_in(random, 3) ? 2 : 1;
    }
    /* Often the very same elements, in the same or another order. */
    int partner = partner_of_out(problem, true);
    if (partner >= 0 && together[partner] && random_once_in(random, 2)) {
        struct place *place = &placement->places[partner];
        const struct place *as = &placement->places[problem->out];
        place->start = as->start;
        place->flat_step = as->flat_step;
        memset(place->repeated, 0, sizeof place->repeated);
        if (random_once_in(random, 2))
            memcpy(place->order, as->order, sizeof place->order);
    }
    finish_flat(placement, problem, together);
}

/* Shifted views of one storage of several axes: out and an input of its shape. */
static void share_shifted(struct placement *placement, const struct problem *problem, int partner,
                          struct random *random)
{
    struct place *out = &placement->places[problem->out], *in = &placement->places[partner];
    uint32_t rank = problem->tensors[partner].shape.rank;
    place_init(out);
    place_init(in);
    for (int i = 0; i < ROOMY_AXES && rank > 0; i++) {
        int64_t axis = random_between(random, 0, rank - 1);
        out->step[axis] = in->step[axis] = random_once_in(random, 3) ? 2 : 1;
        out->before[axis] = random_between(random, 0, 2);
        in->before[axis] = random_between(random, 0, 2);
        out->after[axis] = 2 - out->before[axis];
        in->after[axis] = 2 - in->before[axis];
    }
    finish_alone(placement, problem, problem->out);
    in->storage = out->storage;
    set_layout(in, &problem->tensors[partner], &placement->storages[out->storage].shape);
    placement->shared = true;
}

static void make_random(struct placement *placement, const struct problem *problem,
                        struct random *random)
{
    bool together[PARAMETERS_MAX] = {false};
    int partner = partner_of_out(problem, true);
    for (int i = 0; i < PARAMETERS_MAX; i++)
        if (problem->tensors[i].present)
            arrange_any(&placement->places[i], &problem->tensors[i], i == problem->out, random);
    if (partner >= 0 && random_once_in(random, 4)) {
        share_shifted(placement, problem, partner, random);
        together[partner] = together[problem->out] = true;
    } else if (problem->out >= 0 && random_once_in(random, 2)) {
        share_any(placement, problem, together, random);
    }
    for (int i = 0; i < PARAMETERS_MAX; i++)
        if (problem->tensors[i].present && !together[i])
            finish_alone(placement, problem, i);
}

void placement_make(struct placement *placement, const struct problem *problem,
                    enum arrangement arrangement, uint64_t variant, struct random *random)
{
    memset(placement, 0, sizeof *placement);
    bool together[PARAMETERS_MAX] = {false};
    for (int i = 0; i < PARAMETERS_MAX; i++)
        place_init(&placement->places[i]);
    if (arrangement == ARRANGEMENT_RANDOM) {
        make_random(placement, problem, random);
    } else if (arrangement == ARRANGEMENT_IN_PLACE) {
        int partner = partner_of_out(problem, true);
        static const enum arrangement both[] = {ARRANGEMENT_CONTIGUOUS, ARRANGEMENT_STRIDED,
                                                ARRANGEMENT_TRANSPOSED};
        arrange(&placement->places[problem->out], &problem->tensors[problem->out], true,
                both[variant % 3], variant);
        share_place(placement, problem, partner);
        together[partner] = together[problem->out] = true;
    } else if (arrangement == ARRANGEMENT_OVERLAP) {
        int partner = partner_of_out(problem, false);
        int64_t count = layout_elements(&problem->tensors[partner].shape);
        int64_t out_count = layout_elements(&problem->tensors[problem->out].shape);
        struct place *out = &placement->places[problem->out];
        count = count < out_count ? count : out_count;
        out->start = variant % 2 && count > 1 ? 1 : count / 2;
        if (variant % 4 >= 2) { /* the output comes first */
            placement->places[partner].start = out->start;
            out->start = 0;
        }
        together[partner] = together[problem->out] = true;
        finish_flat(placement, problem, together);
    } else {
        for (int i = 0; i < PARAMETERS_MAX; i++)
            if (problem->tensors[i].present)
                arrange(&placement->places[i], &problem->tensors[i], i == problem->out, arrangement,
                        variant);
    }
    for (int i = 0; i < PARAMETERS_MAX; i++) {
        if (problem->tensors[i].present && !together[i] && arrangement != ARRANGEMENT_RANDOM)
            finish_alone(placement, problem, i);
        for (uint32_t axis = 0; axis < LAYOUT_RANK; axis++)
            placement->repeats = placement->repeats || placement->places[i].repeated[axis];
    }
}

/* ---------------------------------------------------------------- transcripts */

struct text {
    char *bytes;
    size_t length, capacity;
};

static void reserve(struct text *text, size_t more)
{
    if (text->length + more + 1 <= text->capacity)
        return;
    text->capacity = 2 * text->capacity + more + 1024;
    text->bytes = realloc(text->bytes, text->capacity);
    if (!text->bytes)
        abort();
}

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    reserve(text, 1024);
    int length = vsnprintf(text->bytes + text->length, 1024, format, arguments);
    if (length < 0 || length >= 1024)
        abort();
    text->length += (size_t)length;
    va_end(arguments);
}

static void put_name(struct text *text, const char *name, int number)
{
    put(text, "{\"arg_type\":\"DEVICE_TENSOR\",\"value\":{\"inf_name\":\"%s%d\"}}", name, number);
}

static void begin_operation(struct text *text, const char *name)
{
    put(text, "%s{\"type\":\"DEVICE_OP\",\"op\":{\"name\":\"%s\",\"args\":[",
        text->length > 1 ? ",\n" : "", name);
}

/* Ends an operation whose result gets a name. */
static void end_operation(struct text *text, const char *name, int number)
{
    put(text, "],\"out\":");
    put_name(text, name, number);
    put(text, "}}");
}

static void put_int(struct text *text, int64_t value)
{
    put(text, "{\"arg_type\":\"INT\",\"value\":%" PRId64 "}", value);
}

static void put_shape(struct text *text, const struct layout *shape)
{
    put(text, "{\"arg_type\":\"SHAPE\",\"value\":[");
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        put(text, axis ? "," : "");
        put_int(text, shape->shape[axis]);
    }
    put(text, "]}");
}

static void put_empty(struct text *text, const struct placed_storage *storage, uint32_t number)
{
    begin_operation(text, "empty");
    put_shape(text, &storage->shape);
    put(text, ",{\"arg_type\":\"TENSOR_TYPE\",\"value\":\"%s\"}", dtype_name(storage->dtype));
    end_operation(text, "storage", (int)number);
}

static void put_slice(struct text *text, int64_t start, int64_t stop, int64_t step)
{
    put(text,
        "{\"arg_type\":\"SLICE\",\"value\":{\"start\":%" PRId64 ",\"stop\":%" PRId64
        ",\"step\":%" PRId64 "}}",
        start, stop, step);
}

/* The part of the storage that holds the tensor's elements, axes in the storage's order. */
static void put_part(struct text *text, const struct place *place,
                     const struct problem_tensor *tensor, int number)
{
    struct layout stored = stored_shape(place, tensor);
    begin_operation(text, "get_slice");
    put_name(text, "storage", (int)place->storage);
    put(text, ",{\"arg_type\":\"SHAPE\",\"value\":[");
    if (place->flat)
        put_slice(text, place->start,
                  place->start + span_of(layout_elements(&stored), place->flat_step),
                  place->flat_step);
    if (place->leading)
        put_int(text, -2);
    for (uint32_t i = 0; i < stored.rank && !place->flat; i++) {
        uint32_t axis = place->order[i];
        put(text, i || place->leading ? "," : "");
        put_slice(text, place->before[axis],
                  place->before[axis] + span_of(stored.shape[i], place->step[axis]),
                  place->step[axis]);
    }
    put(text, "]}");
    end_operation(text, "t", number);
    if (!place->flat)
        return;
    begin_operation(text, "reshape");
    put_name(text, "t", number);
    put(text, ",");
    put_shape(text, &stored);
    end_operation(text, "t", number);
}

static void put_moveaxis(struct text *text, int number, uint32_t from, uint32_t to)
{
    begin_operation(text, "moveaxis");
    put_name(text, "t", number);
    put(text, ",");
    put_int(text, from);
    put(text, ",");
    put_int(text, to);
    end_operation(text, "t", number);
}

/* Binds the name t<number> to a tensor of the problem. */
static void put_tensor(struct text *text, const struct place *place,
                       const struct problem_tensor *tensor, int number)
{
    uint32_t order[LAYOUT_RANK], rank = tensor->shape.rank;
    put_part(text, place, tensor, number);
    memcpy(order, place->order, sizeof order);
    for (uint32_t to = 0; to < rank; to++) {
        uint32_t from = to;
        while (order[from] != to)
            from++;
        if (from == to)
            continue;
        put_moveaxis(text, number, from, to);
        memmove(order + to + 1, order + to, (from - to) * sizeof *order);
        order[to] = to;
    }
    for (uint32_t axis = 0; axis < rank; axis++) {
        if (!place->repeated[axis])
            continue;
        begin_operation(text, "expand");
        put_name(text, "t", number);
        put(text, ",");
        put_int(text, axis);
        put(text, ",");
        put_int(text, tensor->shape.shape[axis]);
        end_operation(text, "t", number);
    }
}

static void put_base64(struct text *text, const unsigned char *bytes, size_t count)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    reserve(text, (count + 2) / 3 * 4);
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
}

/* A .npy file of version 1.0: https://numpy.org/doc/stable/reference/generated/numpy.lib.format */
static void put_payload(struct text *text, const struct problem_tensor *tensor, bool fortran,
                        const void *packed)
{
    static const char *const types[] = {"|i1", "<i4", "<i8"};
    size_t size = dtype_size(tensor->dtype), count = (size_t)layout_elements(&tensor->shape);
    char header[640], shape[400] = "";
    for (uint32_t axis = 0; axis < tensor->shape.rank; axis++)
        sprintf(shape + strlen(shape), "%" PRId64 ", ", tensor->shape.shape[axis]);
    int length = snprintf(header + 10, sizeof header - 10,
                          "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n",
                          types[tensor->dtype], fortran ? "True" : "False", shape);
    memcpy(header, "\x93NUMPY\x01\0", 8);
    header[8] = (char)(length & 0xff);
    header[9] = (char)(length >> 8);
    size_t head = (size_t)length + 10, bytes = head + count * size;
    unsigned char *file = malloc(bytes);
    if (!file)
        abort();
    memcpy(file, header, head);
    struct layout order = tensor->shape; /* where the file has the elements */
    int64_t stride = 1;
    for (uint32_t axis = 0; fortran && axis < order.rank; axis++) {
        order.stride[axis] = stride;
        stride *= order.shape[axis];
    }
    view_scatter(&order, size, file + head, packed);
    put(text, "{\"arg_type\":\"HOST_TENSOR\",\"value\":{\"tensor_base64\":{\"type\":\"numpy\","
              "\"data\":\"");
    put_base64(text, file, bytes);
    put(text, "\"}}}");
    free(file);
}

static void put_download(struct text *text, const char *name, int number)
{
    begin_operation(text, "device_to_host");
    put_name(text, name, number);
    put(text, "],\"out\":{\"arg_type\":\"NONE\",\"value\":null}}}");
}

static void put_call(struct text *text, const struct problem *problem, const void *payload)
{
    const struct form *form = problem->form;
    begin_operation(text, form->name);
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        put(text, i ? "," : "");
        if (form->parameters[i].kind == PARAMETER_HOST)
            put_payload(text, &problem->payload, problem->payload_fortran, payload);
        else if (problem->tensors[i].present)
            put_name(text, "t", (int)i);
        else
            put(text, "%s", problem->text[i]);
    }
    enum operation_result result = operations[form->operation].result;
    if (result == RESULT_NEW)
        end_operation(text, "made", 0);
    else if (result == RESULT_ALIAS)
        end_operation(text, "t", problem->out);
    else
        put(text, "],\"out\":{\"arg_type\":\"NONE\",\"value\":null}}}");
}

char *placement_transcript(const struct placement *placement, const struct problem *problem,
                           const void *payload)
{
    struct text text = {.bytes = NULL};
    enum operation_id operation = problem->form->operation;
    put(&text, "[");
    for (uint32_t i = 0; i < placement->storage_count; i++)
        put_empty(&text, &placement->storages[i], i);
    for (int i = 0; i < PARAMETERS_MAX; i++)
        if (problem->tensors[i].present)
            put_tensor(&text, &placement->places[i], &problem->tensors[i], i);
    if (operation == OPERATION_FREE_DEVICE_TENSOR) {
        /* Another name keeps the tensor, its storage has none any more. */
        begin_operation(&text, "new_reference");
        put_name(&text, "t", 0);
        end_operation(&text, "made", 0);
        put(&text, ",\n{\"type\":\"FREE_DEVICE_TENSOR\",\"tensor_name\":\"storage0\"}");
    }
    put_call(&text, problem, payload);
    if (operation == OPERATION_EMPTY) {
        begin_operation(&text, "set_const_val");
        put_name(&text, "made", 0);
        put(&text, ",");
        put_int(&text, 42);
        end_operation(&text, "made", 0);
    }
    if (problem->is_new && operation != OPERATION_DEVICE_TO_HOST)
        put_download(&text, "made", 0);
    put(&text, "]");
    return text.bytes;
}

/* ---------------------------------------------------------------- elements of views */

/* The last axes of a view whose elements lie without gaps. */
static uint32_t packed_axes(const struct layout *layout, int64_t *elements)
{
    uint32_t axis = layout->rank;
    *elements = 1;
    while (axis > 0 && (layout->shape[axis - 1] == 1 || layout->stride[axis - 1] == *elements))
        *elements *= layout->shape[--axis];
    return axis;
}

static void copy_row(size_t size, int64_t count, char *to, int64_t to_step, const char *from,
                     int64_t from_step)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < count; i++)
            to[i * to_step] = from[i * from_step];
        break;
    case 4:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + 4 * i * to_step, from + 4 * i * from_step, 4);
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + 8 * i * to_step, from + 8 * i * from_step, 8);
        break;
    }
}

static void copy_view(const struct layout *layout, size_t size, char *image, char *packed,
                      bool scatters)
{
    int64_t row = 1, step = 1;
    uint32_t outer = packed_axes(layout, &row);
    bool is_dense = row > 1 || outer == 0;
    if (layout_elements(layout) == 0)
        return;
    if (!is_dense) { /* rows along the last axis, a step apart */
        outer = layout->rank - 1;
        row = layout->shape[outer];
        step = layout->stride[outer];
    }
    struct layout rows = *layout;
    rows.rank = outer;
    const struct layout *layouts[] = {&rows};
    struct walk walk;
    for (walk_init(&walk, 1, layouts); walk.left > 0; walk_next(&walk)) {
        char *at = image + walk.position[0] * (int64_t)size;
        if (step == 1)
            memcpy(scatters ? at : packed, scatters ? packed : at, (size_t)row * size);
        else if (scatters)
            copy_row(size, row, at, step, packed, 1);
        else
            copy_row(size, row, packed, 1, at, step);
        packed += (size_t)row * size;
    }
}

void view_scatter(const struct layout *layout, size_t size, void *image, const void *packed)
{
    union {
        const void *read;
        void *taken;
    } from = {.read = packed};
    copy_view(layout, size, image, from.taken, true);
}

void view_gather(const struct layout *layout, size_t size, const void *image, void *packed)
{
    union {
        const void *read;
        void *taken;
    } from = {.read = image};
    copy_view(layout, size, from.taken, packed, false);
}
