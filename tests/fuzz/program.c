#include "program.h"

#include <inttypes.h>
#include <stdarg.h>

#include "../unit/helper_declare.h"
#include "tools/problem.h"

enum {
    ELEMENTS = 32, /* of a tensor, about */
    ENTRIES = 40,
    PLANNED_ENTRIES = 16,
    ARGUMENTS = 16,
    POOLED = 16 /* tensors between two calls; those that a call in hand refers to come on top */
};

/* A name that is new. */
static void name_next(struct program *program, char name[12])
{
    snprintf(name, 12, "t%" PRIu32, program->names++);
}

static void release(const struct named *named)
{
    for (int side = 0; side < SIDES; side++)
        healcl_tensor_release(named->tensor[side]);
}

static void drop(struct program *program, struct named *named)
{
    writer_entry(&program->writer, "FREE_DEVICE_TENSOR", "tensor_name", named->name);
    program->entries++;
    release(named);
    *named = program->pool[--program->count];
}

static struct named *keep(struct program *program, const char *name,
                          struct healcl_tensor *const tensor[SIDES])
{
    EXPECT(tensor[REFERENCE] && program->count < PROGRAM_TENSORS);
    struct named *named = &program->pool[program->count++];
    snprintf(named->name, sizeof named->name, "%s", name);
    memcpy(named->tensor, tensor, sizeof named->tensor);
    named->is_raw = false;
    return named;
}

/* ---------------------------------------------------------------- arguments */

/* Arguments as the queue takes them, out of words as the writer takes them. */
struct arguments {
    struct healcl_argument list[SIDES][ARGUMENTS];
    size_t count;
    int64_t sizes[ARGUMENTS][LAYOUT_RANK + 1];
    struct healcl_index items[ARGUMENTS][LAYOUT_RANK + 1];
    char text[2048];
    size_t length;
};

static void add_word(struct arguments *arguments, const char *word)
{
    int length =
        snprintf(arguments->text + arguments->length, sizeof arguments->text - arguments->length,
                 "%s%s", arguments->length > 0 ? " " : "", word);
    arguments->length += (size_t)length;
    EXPECT(arguments->length < sizeof arguments->text && arguments->count < ARGUMENTS);
}

static void add_tensor(struct arguments *arguments, const struct named *named)
{
    add_word(arguments, named->name);
    for (int side = 0; side < SIDES; side++)
        arguments->list[side][arguments->count] = healcl_tensor_argument(named->tensor[side]);
    arguments->count++;
}

static int64_t bound(char **text, bool *present)
{
    char *end;
    int64_t value = strtoll(*text, &end, 10);
    *present = end > *text;
    *text = end + (*end == ':');
    return value;
}

static struct healcl_index item_of(char *text)
{
    struct healcl_index item = {.kind = HEALCL_INDEX_SLICE};
    if (*text == '.')
        return (struct healcl_index){.kind = HEALCL_INDEX_ELLIPSIS};
    if (!memchr(text, ':', strcspn(text, ",)]")))
        return (struct healcl_index){.kind = HEALCL_INDEX_INT, .value = strtoll(text, NULL, 10)};
    item.start = bound(&text, &item.has_start);
    item.stop = bound(&text, &item.has_stop);
    item.step = bound(&text, &item.has_step);
    return item;
}

/* "[1:2,...]", or "(2,3)" where sizes are wanted. */
static struct healcl_argument list_of(struct arguments *arguments, const char *word, bool is_index)
{
    char text[512];
    uint32_t count = 0;
    snprintf(text, sizeof text, "%s", word);
    for (char *item = text + 1; *item && !strchr(")]", *item); count++) {
        EXPECT(count <= LAYOUT_RANK);
        arguments->items[arguments->count][count] = item_of(item);
        arguments->sizes[arguments->count][count] = strtoll(item, NULL, 10);
        item += strcspn(item, ",)]");
        item += strspn(item, ", ");
    }
    return is_index ? healcl_index_argument(count, arguments->items[arguments->count])
                    : healcl_shape_argument(count, arguments->sizes[arguments->count]);
}

static void add_text(struct arguments *arguments, const char *word, bool is_index)
{
    struct healcl_argument argument;
    enum dtype dtype = DTYPE_INT64;
    if (*word == '[' || *word == '(') {
        argument = list_of(arguments, word, is_index);
    } else if (strcmp(word, "none") == 0) {
        argument = healcl_no_argument();
    } else if (*word == ':') {
        while (dtype > 0 && strcmp(dtype_name(dtype), word + 1) != 0)
            dtype--;
        argument = healcl_dtype_argument((enum healcl_dtype)dtype);
    } else {
        argument = healcl_int_argument(strtoll(word, NULL, 10));
    }
    add_word(arguments, word);
    arguments->list[REFERENCE][arguments->count] = arguments->list[DEVICE][arguments->count] =
        argument;
    arguments->count++;
}

/* ---------------------------------------------------------------- calls */

/* Returns the part of a message after "call 17 ". */
static const char *behind_number(const char *message)
{
    const char *space = strchr(message, ' ');
    return space && strchr(space + 1, ' ') ? strchr(space + 1, ' ') : message;
}

/* The reference reports data errors at once, the device when it is waited for. */
static void call_on_device(struct program *program, const char *operation,
                           const struct arguments *arguments, struct healcl_tensor **result,
                           enum healcl_status expected, const char *message)
{
    struct healcl_error error = {.detail = NULL};
    struct healcl_queue *queue = program->queues[DEVICE];
    enum healcl_status status =
        healcl_call(queue, operation, arguments->count, arguments->list[DEVICE], result, &error);
    if (status == HEALCL_OK && expected != HEALCL_OK)
        status = healcl_queue_wait(queue, &error);
    if (status != expected || (status != HEALCL_OK &&
                               strcmp(behind_number(message), behind_number(error.message)) != 0)) {
        fprintf(stderr, "%s: reference '%s', device '%s'\n", operation, message, error.message);
        abort();
    }
    healcl_error_clear(&error);
}

/* Calls an operation. *result: where it makes or views a tensor under a new name, that; else NULL.
 * Returns whether it was accepted. */
static bool call(struct program *program, const char *operation, const struct arguments *arguments,
                 struct named **result)
{
    struct healcl_error error = {.detail = NULL};
    struct healcl_tensor *tensor[SIDES] = {NULL, NULL};
    char name[12];
    enum healcl_status status =
        healcl_call(program->queues[REFERENCE], operation, arguments->count,
                    arguments->list[REFERENCE], result ? &tensor[REFERENCE] : NULL, &error);
    expect_told(status, &error);
    if (program->sides == SIDES)
        call_on_device(program, operation, arguments, result ? &tensor[DEVICE] : NULL, status,
                       error.message);
    const bool of_data = status != HEALCL_OK && strstr(error.message, " at [");
    if (status == HEALCL_OK || of_data ||
        (program->is_for_plan && take_below(&program->bytes, 16) == 1)) {
        name_next(program, name);
        writer_call(&program->writer, result ? name : NULL, operation, "%s", arguments->text);
        program->entries++;
        program->ended = status != HEALCL_OK;
        if (program->ended)
            snprintf(program->refusal, sizeof program->refusal, "%s", behind_number(error.message));
    }
    healcl_error_clear(&error);
    if (result)
        *result = status == HEALCL_OK && tensor[REFERENCE] ? keep(program, name, tensor) : NULL;
    if (status != HEALCL_OK)
        healcl_tensor_release(tensor[DEVICE]);
    return status == HEALCL_OK;
}

/* Calls an operation on one tensor and some words. */
__attribute__((format(printf, 5, 6))) static bool call_on(struct program *program,
                                                          const char *operation,
                                                          const struct named *named,
                                                          struct named **result, const char *format,
                                                          ...)
{
    struct arguments arguments = {.count = 0};
    char words[256];
    va_list values;
    va_start(values, format);
    vsnprintf(words, sizeof words, format, values);
    va_end(values);
    if (named)
        add_tensor(&arguments, named);
    for (char *word = words; *word;) {
        char *end = word + strcspn(word, " ");
        char *next = end + (*end == ' ');
        *end = 0;
        add_text(&arguments, word, strcmp(operation, "get_slice") == 0);
        word = next;
    }
    return call(program, operation, &arguments, result);
}

/* ---------------------------------------------------------------- tensors */

static struct named *upload(struct program *program, const struct problem_tensor *tensor,
                            struct random *random)
{
    struct healcl_error error = {.detail = NULL};
    struct healcl_tensor *made[SIDES] = {NULL, NULL};
    char name[12];
    void *data = malloc((size_t)layout_elements(&tensor->shape) * dtype_size(tensor->dtype) + 1);
    EXPECT(data);
    problem_fill(tensor, random, data);
    for (int side = 0; side < program->sides; side++)
        EXPECT(healcl_tensor_create(program->queues[side], (enum healcl_dtype)tensor->dtype,
                                    tensor->shape.rank, tensor->shape.shape, data, &made[side],
                                    &error) == HEALCL_OK);
    name_next(program, name);
    if (program->is_for_plan)
        writer_declare(&program->writer, name, tensor->dtype, &tensor->shape);
    else
        writer_upload(&program->writer, name, tensor->dtype, &tensor->shape,
                      take_below(&program->bytes, 8) == 1, tensor->dtype, data);
    program->entries++;
    free(data);
    return keep(program, name, made);
}

static bool fits(const struct named *named, const struct problem_tensor *tensor, bool exactly)
{
    const struct healcl_tensor_info info = healcl_tensor_describe(named->tensor[REFERENCE]);
    if (named->is_raw || (enum dtype)info.dtype != tensor->dtype || info.rank != tensor->shape.rank)
        return false;
    for (uint32_t i = 0; i < info.rank; i++)
        if (exactly ? info.shape[i] != tensor->shape.shape[i]
                    : info.shape[i] < tensor->shape.shape[i])
            return false;
    return true;
}

/* A part of a tensor that is at least as large, of the wanted shape, anywhere in it. */
static struct named *part(struct program *program, const struct named *of,
                          const struct problem_tensor *tensor)
{
    const struct healcl_tensor_info info = healcl_tensor_describe(of->tensor[REFERENCE]);
    struct named *result;
    char index[256] = "[";
    for (uint32_t i = 0; i < info.rank; i++) {
        const int64_t size = tensor->shape.shape[i], room = info.shape[i];
        const int64_t most = size > 1 ? (room - 1) / (size - 1) : 1;
        const int64_t step = 1 + take_below(&program->bytes, (uint32_t)(most > 2 ? 2 : most));
        const int64_t span = size > 0 ? (size - 1) * step + 1 : 0;
        const int64_t start = take_below(&program->bytes, (uint32_t)(room - span) + 1);
        snprintf(index + strlen(index), sizeof index - strlen(index),
                 "%s%" PRId64 ":%" PRId64 ":%" PRId64, i ? "," : "", start, start + span, step);
    }
    strcat(index, info.rank ? "]" : "...]");
    EXPECT(call_on(program, "get_slice", of, &result, "%s", index) && result);
    return result;
}

/* One of the pool, or a part of one; NULL where nothing fits. */
static struct named *pooled(struct program *program, const struct problem_tensor *tensor,
                            bool exactly)
{
    uint32_t first = program->count ? take_below(&program->bytes, program->count) : 0;
    for (uint32_t i = 0; i < program->count; i++) {
        struct named *named = &program->pool[(first + i) % program->count];
        if (fits(named, tensor, exactly))
            return exactly ? named : part(program, named, tensor);
    }
    return NULL;
}

/* A new tensor: whole, or a part of one, or with its axes in another order. */
static struct named *fresh(struct program *program, const struct problem_tensor *tensor,
                           struct random *random)
{
    struct problem_tensor base = *tensor;
    int64_t shape[LAYOUT_RANK];
    struct named *result;
    const uint32_t rank = base.shape.rank, way = take_below(&program->bytes, 4);
    const bool any_order =
        base.contents != CONTENTS_PERMUTATION && base.contents != CONTENTS_COPRIME;
    if (rank == 0 || way < 2 || !any_order || rank > 8)
        return upload(program, tensor, random);
    const uint32_t axis = take_below(&program->bytes, rank);
    memcpy(shape, base.shape.shape, sizeof shape);
    if (way == 2) {
        shape[axis] = shape[axis] * (1 + take_below(&program->bytes, 2)) + 1;
        base.shape = layout_of_shape(rank, shape);
        return part(program, upload(program, &base, random), tensor);
    }
    memmove(shape + 1, shape, axis * sizeof *shape);
    shape[0] = base.shape.shape[axis];
    base.shape = layout_of_shape(rank, shape);
    EXPECT(
        call_on(program, "moveaxis", upload(program, &base, random), &result, "0 %" PRIu32, axis));
    return result;
}

static struct named *operand(struct program *program, const struct problem_tensor *tensor,
                             struct random *random)
{
    /* Moduli and indices seldom come from the pool, where most values are neither. */
    const bool is_picky = tensor->contents != CONTENTS_VALUES && tensor->contents != CONTENTS_TAME;
    const uint32_t way = take_below(&program->bytes, is_picky ? 24 : 3);
    struct named *named = way == 1 || way == 2 ? pooled(program, tensor, way == 1) : NULL;
    return named ? named : fresh(program, tensor, random);
}

/* ---------------------------------------------------------------- entries */

static void fill(struct program *program, struct named *named)
{
    named->is_raw = false;
    (void)call_on(program, "set_const_val", named, NULL, "%d",
                  (int)take_below(&program->bytes, 3) - 1);
}

/* A tensor by "empty" or "zeros". */
static struct named *make(struct program *program, const char *operation,
                          const struct problem_tensor *tensor)
{
    struct named *result;
    char shape[SHAPE_TEXT_SIZE];
    layout_shape_text(&tensor->shape, shape);
    for (char *at = shape, *from = shape; (*at = *from); from++) /* words are without blanks */
        at += *from != ' ';
    EXPECT(call_on(program, operation, NULL, &result, "%s :%s", shape, dtype_name(tensor->dtype)));
    result->is_raw = strcmp(operation, "empty") == 0;
    return result;
}

/* Returns the tensor that a call writes: new, unwritten memory unless it is added to, or an
 * existing one. */
static struct named *output(struct program *program, const struct problem *problem,
                            const struct problem_tensor *tensor, struct random *random, bool *raw)
{
    *raw = take_below(&program->bytes, 3) == 1 && !strstr(problem->form->name, "sum");
    return *raw ? make(program, "empty", tensor) : operand(program, tensor, random);
}

static bool choose_dtypes(struct program *program, const struct form *form,
                          struct problem_dtypes *dtypes)
{
    uint32_t first = take_below(&program->bytes, 27);
    for (uint32_t i = 0; i < 27; i++) {
        uint32_t which = (first + i) % 27;
        *dtypes = (struct problem_dtypes){(enum dtype)(which % 3), (enum dtype)(which / 3 % 3),
                                          (enum dtype)(which / 9)};
        if ((problem_also(form) >= 0 || dtypes->also == dtypes->value) &&
            (problem_has_index(form) || dtypes->index == dtypes->value) &&
            problem_accepts(form, dtypes))
            return true;
    }
    return false;
}

static void add_call(struct program *program)
{
    const struct form *form = &forms[take_below(&program->bytes, (uint32_t)form_count)];
    const enum operation_id id = form_id(form);
    struct random random = {take_below(&program->bytes, 1 << 16)};
    struct problem_dtypes dtypes;
    struct problem problem;
    struct arguments arguments = {.count = 0};
    struct named *named = NULL, *result = NULL;
    bool raw = false;
    if (id == OPERATION_DEVICE_TO_HOST || !problem_is_made(form) ||
        !choose_dtypes(program, form, &dtypes))
        return;
    problem_make(&problem, form, &dtypes, ELEMENTS, ANY_SHAPE, take(&program->bytes), &random);
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        const struct problem_tensor *tensor = &problem.tensors[i];
        if (tensor->present && (int)i == problem.out)
            named = output(program, &problem, tensor, &random, &raw);
        if (program->ended)
            return;
        if (tensor->present)
            add_tensor(&arguments,
                       (int)i == problem.out ? named : operand(program, tensor, &random));
        else
            add_text(&arguments, problem.text[i],
                     form->parameters[i].kind == HEALCL_PARAMETER_INDEX);
    }
    bool accepted = call(program, take(&program->bytes) % 2 ? form->name : form->underscore_name,
                         &arguments, form->operation->result == RESULT_NEW ? &result : NULL);
    if (!program->ended && raw && !accepted)
        fill(program, named);
    else if (raw)
        named->is_raw = false;
}

/* ---------------------------------------------------------------- what passes look for */

/* Describes a tensor like a named one. */
static struct problem_tensor like(const struct named *named)
{
    const struct healcl_tensor_info info = healcl_tensor_describe(named->tensor[REFERENCE]);
    return (struct problem_tensor){.present = true,
                                   .dtype = (enum dtype)info.dtype,
                                   .shape = layout_of_shape(info.rank, info.shape),
                                   .contents = CONTENTS_VALUES};
}

/* One of moduli, as many as the last axis has elements. */
static struct named *moduli(struct program *program, const struct problem_tensor *tensor,
                            struct random *random)
{
    struct problem_tensor q = *tensor;
    q.shape = layout_of_shape(1, &tensor->shape.shape[tensor->shape.rank - 1]);
    q.contents = CONTENTS_MODULI;
    return upload(program, &q, random);
}

/* out = a with another tensor of its shape, or with an integer. q: moduli, or NULL for an integer.
 */
static void elementwise(struct program *program, const struct named *a, const struct named *q,
                        struct named *out)
{
    static const char *const names[] = {"modmul", "modsum", "modmul", "modmul",
                                        "modsum", "mod",    "modneg"};
    const uint32_t which = take_below(&program->bytes, 7);
    const struct problem_tensor tensor = like(a);
    struct arguments arguments = {.count = 0};
    const bool has_b = which < 5, has_integer = take_below(&program->bytes, 5) == 1;
    const struct named *b = has_b && !has_integer ? pooled(program, &tensor, true) : NULL;
    add_tensor(&arguments, a);
    if (b)
        add_tensor(&arguments, b);
    else if (has_b)
        add_text(&arguments, take_below(&program->bytes, 2) ? "-3" : "0", false);
    if (q)
        add_tensor(&arguments, q);
    else
        add_text(&arguments, take_below(&program->bytes, 2) ? "97" : "2147483647", false);
    add_tensor(&arguments, out);
    if (!call(program, names[which], &arguments, NULL) && !program->ended)
        fill(program, out); /* which may be new */
    out->is_raw = false;
}

/* A step into memory of its own, and one that reads it last: a chain, a sum of products, or a sum
 * onto zeros. */
static void add_pair(struct program *program, struct named *a, struct random *random)
{
    struct problem_tensor tensor = like(a), summed = tensor;
    struct arguments arguments = {.count = 0};
    const uint32_t rank = tensor.shape.rank;
    const bool sums = rank >= 2 && take_below(&program->bytes, 3);
    struct named *t = make(program, "empty", &tensor);
    const struct named *q = rank > 0 && (sums || take_below(&program->bytes, 2))
                                ? moduli(program, &tensor, random)
                                : NULL;
    /* Sums may have others; they come before, for nothing moves past an upload. */
    const struct named *other =
        sums && take_below(&program->bytes, 4) == 1 ? moduli(program, &tensor, random) : q;
    elementwise(program, a, q, t);
    if (program->ended)
        return;
    if (sums) {
        int64_t shape[LAYOUT_RANK];
        const uint32_t axis = take_below(&program->bytes, rank - 1);
        char word[12];
        memcpy(shape, tensor.shape.shape, sizeof shape);
        memmove(shape + axis, shape + axis + 1, (rank - axis - 1) * sizeof *shape);
        summed.shape = layout_of_shape(rank - 1, shape);
        struct named *out = make(program, "zeros", &summed);
        snprintf(word, sizeof word, "%" PRIu32, axis);
        add_tensor(&arguments, t);
        add_text(&arguments, word, false);
        add_tensor(&arguments, other);
        add_tensor(&arguments, out);
        (void)call(program, "axis_modsum", &arguments, NULL);
    } else {
        struct named *out = take_below(&program->bytes, 2) ? a : make(program, "empty", &tensor);
        elementwise(program, t, q, out);
    }
    if (!program->ended && take_below(&program->bytes, 4))
        drop(program, t);
}

/* A copy in another order of axes, which is read in the first one. */
static void add_copy(struct program *program, const struct named *a)
{
    const struct problem_tensor tensor = like(a);
    const uint32_t rank = tensor.shape.rank;
    struct named *moved, *copy, *back;
    if (rank < 2)
        return;
    const uint32_t axis = take_below(&program->bytes, rank - 1);
    EXPECT(call_on(program, "moveaxis", a, &moved, "%" PRIu32 " %" PRIu32, axis, rank - 1));
    EXPECT(call_on(program, "contiguous", moved, &copy, "%s", ""));
    if (take_below(&program->bytes, 3) == 1)
        elementwise(program, copy, NULL, take_below(&program->bytes, 2) ? copy : moved);
    if (program->ended)
        return;
    EXPECT(call_on(program, "moveaxis", copy, &back, "%" PRIu32 " %" PRIu32, rank - 1, axis));
    struct named *out = take_below(&program->bytes, 2) ? pooled(program, &tensor, true) : NULL;
    elementwise(program, back, NULL, out ? out : make(program, "empty", &tensor));
    if (!program->ended && take_below(&program->bytes, 4))
        drop(program, copy);
}

/* Calls an operation on all slices along an axis. */
static void add_slices(struct program *program, const struct named *a, struct random *random)
{
    const struct healcl_tensor_info info = healcl_tensor_describe(a->tensor[REFERENCE]);
    const struct problem_tensor tensor = like(a);
    struct named *slices[4];
    int64_t count = info.rank > 1 ? info.shape[0] : 0;
    if (count < 2)
        return;
    count = count > 4 ? 4 : count;
    const struct named *q =
        take_below(&program->bytes, 2) ? moduli(program, &tensor, random) : NULL;
    for (int i = 0; i < count; i++)
        EXPECT(call_on(program, "get_slice", a, &slices[i], "[%d:%d]", i, i + 1));
    const struct bytes same = program->bytes;
    for (int i = 0; i < count && !program->ended; i++) {
        program->bytes = same;
        elementwise(program, slices[i], q, slices[i]);
    }
}

static void add_pattern(struct program *program)
{
    struct random random = {take_below(&program->bytes, 1 << 16)};
    struct named *a =
        program->count ? &program->pool[take_below(&program->bytes, program->count)] : NULL;
    if (!a || healcl_tensor_describe(a->tensor[REFERENCE]).dtype == HEALCL_INT8) {
        int64_t shape[4];
        const uint32_t rank = 1 + take_below(&program->bytes, 4);
        for (uint32_t i = 0; i < rank; i++)
            shape[i] = 1 + take_below(&program->bytes, 4);
        struct problem_tensor tensor = {.shape = layout_of_shape(rank, shape), .high = 63};
        tensor.dtype = take_below(&program->bytes, 2) ? DTYPE_INT64 : DTYPE_INT32;
        tensor.contents = take_below(&program->bytes, 2) ? CONTENTS_VALUES : CONTENTS_TAME;
        a = upload(program, &tensor, &random);
    }
    const uint32_t which = take_below(&program->bytes, 4);
    if (which < 2)
        add_pair(program, a, &random);
    else if (which == 2)
        add_copy(program, a);
    else
        add_slices(program, a, &random);
}

/* ---------------------------------------------------------------- the whole */

static void add_download(struct program *program, const struct named *named)
{
    struct healcl_error error = {.detail = NULL};
    const struct healcl_tensor_info info = healcl_tensor_describe(named->tensor[REFERENCE]);
    const struct layout layout = layout_of_shape(info.rank, info.shape);
    char *data = program->is_for_plan ? NULL : malloc(2 * info.bytes + 1);
    for (int side = 0; data && side < program->sides; side++)
        EXPECT(healcl_tensor_read(named->tensor[side], data + (size_t)side * info.bytes, info.bytes,
                                  &error) == HEALCL_OK);
    EXPECT(!data || program->sides < SIDES || memcmp(data, data + info.bytes, info.bytes) == 0);
    writer_download(&program->writer, named->name, (enum dtype)info.dtype, &layout, data);
    program->entries++;
    program->downloads++;
    free(data);
}

static void add_border(struct program *program)
{
    writer_entry(&program->writer, program->in_segment ? "SEGMENT_END" : "SEGMENT_START",
                 program->in_segment ? NULL : "name", "segment");
    program->entries++;
    program->in_segment = !program->in_segment;
}

static void add_entry(struct program *program)
{
    while (program->count > POOLED)
        drop(program, &program->pool[take_below(&program->bytes, program->count)]);
    const uint8_t what = take(&program->bytes);
    struct named *named = program->count ? &program->pool[what % program->count] : NULL;
    if (what < 70)
        add_call(program);
    else if (what < 200)
        add_pattern(program);
    else if (what < 220 && named)
        add_download(program, named);
    else if (what < 240 && named)
        drop(program, named);
    else
        add_border(program);
}

void program_make(struct program *program, const uint8_t *data, size_t size, bool is_for_plan,
                  struct healcl_device *device)
{
    static struct healcl_queue *queues[SIDES]; /* the same for all: opening one is slow */
    struct healcl_device *const devices[SIDES] = {NULL, device};
    struct healcl_error error = {.detail = NULL};
    *program = (struct program){.bytes = {data, size},
                                .is_for_plan = is_for_plan,
                                .queues = queues,
                                .sides = device ? SIDES : 1};
    for (int side = 0; side < program->sides; side++)
        EXPECT(queues[side] ||
               healcl_queue_open(devices[side], NULL, &queues[side], &error) == HEALCL_OK);
    const size_t most = is_for_plan ? PLANNED_ENTRIES : ENTRIES;
    while (program->bytes.left > 0 && program->entries < most && !program->ended)
        add_entry(program);
    /* Some are not looked at: so that passes may leave them out. */
    for (uint32_t i = 0; i < program->count && !program->ended; i++)
        if (is_for_plan ? i % 4 == 0 : i % 4 != 3)
            add_download(program, &program->pool[i]);
    if (program->in_segment)
        add_border(program);
    EXPECT(program->entries == 0 || writer_finish(&program->writer));
}

void program_release(struct program *program)
{
    while (program->count > 0)
        release(&program->pool[--program->count]);
    free(program->writer.bytes);
}

void program_expect_refusal(const struct program *program, const char *message)
{
    if (strcmp(program->refusal, behind_number(message)) == 0)
        return;
    fprintf(stderr, "%s\n'%s' of\n'... %s'\n", program->writer.bytes, message, program->refusal);
    abort();
}
