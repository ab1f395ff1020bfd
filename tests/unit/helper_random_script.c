#include "helper_random_script.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/random.h"

enum { TENSORS_MOST = 64, RANK_MOST = 3, LENGTH_MOST = 24, LINE_SIZE = 256 };

struct draft {
    struct script *script;
    struct random random;
    struct {
        bool is_there;
        uint32_t rank;
        int64_t shape[RANK_MOST];
    } tensors[TENSORS_MOST];
    int count;
};

static int64_t below(struct draft *draft, int64_t limit)
{
    return random_between(&draft->random, 0, limit - 1);
}

__attribute__((format(printf, 2, 3))) static void put(struct draft *draft, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    script_lines(draft->script, line);
}

static const char *shape_text(uint32_t rank, const int64_t *shape, char text[LINE_SIZE])
{
    int at = 0;
    for (uint32_t i = 0; i < rank; i++)
        at += snprintf(text + at, LINE_SIZE - (size_t)at, "%c%" PRId64, i ? ',' : '(', shape[i]);
    snprintf(text + at, LINE_SIZE - (size_t)at, ")");
    return text;
}

/* Returns its number, after which it is named. */
static int add(struct draft *draft, uint32_t rank, const int64_t *shape)
{
    const int number = draft->count++;
    draft->tensors[number].is_there = true;
    draft->tensors[number].rank = rank;
    memcpy(draft->tensors[number].shape, shape, rank * sizeof *shape);
    return number;
}

static int upload(struct draft *draft, uint32_t rank, const int64_t *shape)
{
    char text[LINE_SIZE];
    const int number = add(draft, rank, shape);
    put(draft, "t%d %s", number, shape_text(rank, shape, text));
    return number;
}

static int empty(struct draft *draft, uint32_t rank, const int64_t *shape)
{
    char text[LINE_SIZE];
    const int number = add(draft, rank, shape);
    put(draft, "t%d = %s %s :int64", number, below(draft, 2) ? "empty" : "zeros",
        shape_text(rank, shape, text));
    return number;
}

static int upload_any(struct draft *draft)
{
    int64_t shape[RANK_MOST];
    const uint32_t rank = (uint32_t)(2 + below(draft, 2));
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = 2 + below(draft, 4);
    return upload(draft, rank, shape);
}

static bool fits(const struct draft *draft, int a, int b)
{
    return draft->tensors[a].is_there && draft->tensors[a].rank == draft->tensors[b].rank &&
           memcmp(draft->tensors[a].shape, draft->tensors[b].shape,
                  draft->tensors[b].rank * sizeof *draft->tensors[b].shape) == 0;
}

/* One that is there, of the shape of another. */
static int like(struct draft *draft, int other)
{
    for (int tries = 0; tries < 4; tries++) {
        const int number = (int)below(draft, draft->count);
        if (number != other && fits(draft, number, other))
            return number;
    }
    return upload(draft, draft->tensors[other].rank, draft->tensors[other].shape);
}

static int some(struct draft *draft)
{
    for (int tries = 0; tries < 8; tries++) {
        const int number = (int)below(draft, draft->count);
        if (draft->tensors[number].is_there)
            return number;
    }
    return upload_any(draft);
}

static void put_sum(struct draft *draft, int a)
{
    int64_t shape[RANK_MOST];
    const uint32_t rank = draft->tensors[a].rank, axis = (uint32_t)below(draft, rank - 1);
    memcpy(shape, draft->tensors[a].shape, sizeof shape);
    const int q = upload(draft, 1, &shape[rank - 1]);
    memmove(shape + axis, shape + axis + 1, (rank - axis - 1) * sizeof *shape);
    const int sum = rank == 3 ? empty(draft, 2, shape) : upload(draft, 1, shape);
    put(draft, "axis_modsum t%d %u t%d t%d", a, (unsigned)axis, q, sum);
    draft->tensors[q].is_there = false; /* it stays what moduli can be */
    draft->tensors[sum].is_there = rank == 3;
    if (rank == 2)
        put(draft, "get t%d; free t%d; free t%d", sum, q, sum);
}

/* Adds products to sums, once or twice, with something between them now and then. */
static void put_products(struct draft *draft)
{
    const int64_t k = 1 + below(draft, 2), n = 2, terms = 2 + below(draft, 4),
                  reps = 1 + below(draft, 3);
    char text[LINE_SIZE];
    const int number = draft->count++;
    const int b = upload(draft, 3, (int64_t[]){terms, k, n}), q = upload(draft, 1, &k);
    const int sum = upload(draft, 3, (int64_t[]){reps, k, n});
    draft->tensors[q].is_there = false;
    put(draft, "t%d %s", number, shape_text(4, (int64_t[]){reps, terms, k, n}, text));
    for (int64_t times = 1 + below(draft, 3); times > 0; times--) {
        put(draft, "modmul_axis_sum t%d t%d t%d t%d -1", number, b, q, sum);
        if (below(draft, 4) == 0)
            put(draft, "_modsum_ttc t%d t%d 97 t%d", sum, sum, sum);
    }
    if (below(draft, 2))
        put(draft, "free t%d; free t%d", number, q);
}

/* A view in another shape. */
static void put_view(struct draft *draft, int a)
{
    int64_t shape[RANK_MOST] = {0};
    char text[LINE_SIZE];
    const uint32_t rank = draft->tensors[a].rank;
    memcpy(shape, draft->tensors[a].shape, sizeof shape);
    if (below(draft, 2)) {
        const int64_t last = shape[rank - 1];
        memmove(shape + 1, shape, (rank - 1) * sizeof *shape);
        shape[0] = last;
        put(draft, "t%d = moveaxis t%d -1 0", add(draft, rank, shape), a);
    } else if (rank == 2) {
        const int64_t flat[] = {1, shape[0], shape[1]};
        put(draft, "t%d = reshape t%d %s", add(draft, 3, flat), a, shape_text(3, flat, text));
    } else {
        const int64_t flat[] = {shape[0] * shape[1], shape[2]};
        put(draft, "t%d = reshape t%d %s", add(draft, 2, flat), a, shape_text(2, flat, text));
    }
}

static void put_elementwise(struct draft *draft, int a)
{
    const int b = like(draft, a);
    const int out =
        below(draft, 2) ? a : empty(draft, draft->tensors[a].rank, draft->tensors[a].shape);
    if (below(draft, 3))
        put(draft, "_modmul_ttc t%d t%d 97 t%d", a, b, out);
    else
        put(draft, "abs t%d t%d", a, out);
}

static void put_drop(struct draft *draft, int a)
{
    if (below(draft, 2))
        put(draft, "get t%d", a);
    put(draft, "free t%d", a);
    draft->tensors[a].is_there = false;
}

static void put_something(struct draft *draft)
{
    const int a = some(draft);
    switch (below(draft, 8)) {
    case 0: upload_any(draft); break;
    case 1: put_products(draft); break;
    case 2:
        if (draft->tensors[a].rank > 1)
            put_sum(draft, a);
        break;
    case 3:
        if (draft->tensors[a].rank > 1)
            put_view(draft, a);
        break;
    case 4: put_drop(draft, a); break;
    default: put_elementwise(draft, a); break;
    }
}

/* Axis 1 of x and y is summed. */
static const char *const chosen[SCRIPTS_CHOSEN] = {
    /* A sum that is pending is added to by what wants another one. */
    "x (4,4,1,2); b (4,1,2); q (1); o (4,1,2); r (1,1,2); y = get_slice x [0:1];"
    "modmul_axis_sum x b q o -1; modmul_axis_sum y b q r -1; modmul_axis_sum y o q r -1; get r; "
    "get o",
    /* Sums in one storage, side by side; one that overlaps them. */
    "x (1,4,1,2); b (4,1,2); q (1); w (4,1,2); u = get_slice w [0:1]; v = get_slice w [2:3];"
    "modmul_axis_sum x b q u -1; modmul_axis_sum x b q v -1; modmul_axis_sum x b q u -1;"
    "o = get_slice w [3:4]; abs o o; abs v v; modmul_axis_sum x b q v -1; get w",
    /* One sum is in two segments; moduli change or end. */
    "x (1,4,1,2); b (4,1,2); q (1); o (1,1,2); p (1); segment s; modmul_axis_sum x b q o -1; end;"
    "segment t; modmul_axis_sum x b q o -1; _modsum_tcc q 5 97 q; modmul_axis_sum x b p o -1;"
    "free p; get o; end",
    /* A sum that is written over another one, which nobody has asked for. */
    "x (3,4,2); q (2); s = empty (3,2) :int64; axis_modsum x 1 q s; axis_modsum x 1 q s; get s;"
    "axis_modsum x 1 q s; free s",
    /* Several steps of one operation after an exchange. */
    "x (1,4,1,6); b (4,1,6); q (1); o (1,1,6); u = get_slice o [:,:,0:5];"
    "v = get_slice o [:,:,1:6]; modmul_axis_sum x b q o -1; abs u v; get o",
};

void script_random(struct script *script, uint64_t seed)
{
    if (seed < SCRIPTS_CHOSEN) {
        script_lines(script, chosen[seed]);
        return;
    }
    struct draft draft = {.script = script, .random = {seed}};
    upload_any(&draft);
    for (int64_t length = 2 + below(&draft, LENGTH_MOST - 2);
         length > 0 && draft.count < TENSORS_MOST - 6; length--) {
        if (length % 5 == 0)
            put(&draft, "segment s%d", (int)length);
        put_something(&draft);
        if (length % 5 == 0)
            put(&draft, "end");
    }
    for (int i = 0; i < draft.count; i++)
        if (draft.tensors[i].is_there)
            put(&draft, "get t%d", i);
}
