/*
 * The conditions of passes, one by one: small programs that a pass just changes, or just does not.
 * Plans with and without the pass give equal results on the reference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "helper_script.h"
#include "plan/pass.h"
#include "tools/random.h"

enum { LINES_SIZE = 256, ROWS = 4, COLUMNS = 6, ELEMENTS_MOST = 128 };

static struct healcl_error error;

/* A program by its lines (helper_script.h), and "between N;", so many steps that have nothing to do
 * with the others; and how many changes the passes make. */
struct program {
    const char *pass;
    int changes;
    const char *lines;
};

/* ---------------------------------------------------------------- programs */

static void upload(struct script *script, const char *name, uint32_t rank, const int64_t *shape,
                   int64_t least, int64_t most)
{
    int64_t values[ELEMENTS_MOST];
    struct random random = {(uint64_t)name[0] * 7919};
    const struct layout layout = layout_of_shape(rank, shape);
    assert_true(layout_elements(&layout) <= ELEMENTS_MOST);
    for (int64_t i = 0; i < layout_elements(&layout); i++)
        values[i] = random_between(&random, least, most);
    script_upload(script, name, DTYPE_INT64, rank, shape, values);
}

/* x, y, z, v and o are [4,6], X and Y [6,4], b [48]; q and r are moduli of columns, rows those of
 * rows. */
static void declare(struct script *script)
{
    static const int64_t wide[] = {ROWS, COLUMNS}, tall[] = {COLUMNS, ROWS};
    script_segment_start(script, "inputs");
    for (const char *name = "xyzvo"; *name; name++)
        upload(script, (char[]){*name, 0}, 2, wide, -1000, 1000);
    for (const char *name = "XY"; *name; name++)
        upload(script, (char[]){*name, 0}, 2, tall, -1000, 1000);
    upload(script, "q", 1, (int64_t[]){COLUMNS}, 90, 200);
    upload(script, "r", 1, (int64_t[]){COLUMNS}, 90, 200);
    upload(script, "rows", 2, (int64_t[]){ROWS, 1}, 90, 200);
    upload(script, "b", 1, (int64_t[]){2 * (int64_t)ROWS * COLUMNS}, -1000, 1000);
    upload(script, "index", 2, wide, 0, ROWS - 1);
    upload(script, "w", 1, (int64_t[]){1}, 0, 1000);
    script_segment_end(script);
    script_segment_start(script, "compute");
}

static void add_lines(struct script *script, const char *lines)
{
    const char *gap = strstr(lines, "between ");
    if (gap) {
        char before[LINES_SIZE];
        snprintf(before, sizeof before, "%.*s", (int)(gap - lines), lines);
        script_lines(script, before);
        for (int left = atoi(gap + strlen("between ")); left > 0; left--)
            script_lines(script, "_modsum_tcc w 1 1009 w");
        lines = strchr(gap, ';') + 1;
    }
    script_lines(script, lines);
}

static struct script_results results_of(const struct script *script)
{
    struct script_results results = {0};
    if (script_run_on(script, NULL, &results, &error) != HEALCL_OK)
        fail_msg("%s", error.message);
    return results;
}

static uint32_t set_of(const char *name)
{
    uint32_t set = 0;
    assert_int_equal(passes_parse(name, &set, &error), HEALCL_OK);
    return set;
}

static void expect_program(const struct program *program, void (*declares)(struct script *script),
                           const char *results, size_t number)
{
    struct script script = {0};
    declares(&script);
    add_lines(&script, program->lines);
    script_segment_end(&script);
    for (const char *name = results; *name; name++)
        script_download(&script, (char[]){*name, 0});
    script_plan(&script);
    struct script_results expected = results_of(&script);
    assert_int_equal(plan_optimise(script.plan, set_of(program->pass), &error), HEALCL_OK);
    if (script.plan->pass_changes != (uint64_t)program->changes)
        fail_msg("%s, program %zu (%s): %zu changes, not %d", program->pass, number, program->lines,
                 (size_t)script.plan->pass_changes, program->changes);
    struct script_results found = results_of(&script);
    if (!script_same_results(&expected, &found))
        fail_msg("%s, program %zu (%s): other results", program->pass, number, program->lines);
    script_results_release(&expected);
    script_results_release(&found);
    script_release(&script);
}

#define EXPECT_AFTER(declare, programs, results)                       \
    for (size_t i_ = 0; i_ < sizeof programs / sizeof *programs; i_++) \
    expect_program(&programs[i_], declare, results, i_)

#define EXPECT(programs) EXPECT_AFTER(declare, programs, "xyzvoXYbw")
#define NEW "t = empty (4,6) :int64;"
#define NEW_TALL "t = empty (6,4) :int64;"

/* ---------------------------------------------------------------- copies */

static void copies_that_are_written_through(void **state)
{
    (void)state;
    static const struct program programs[] = {
        /* elementwise: rows stay rows */
        {"copies", 1, NEW "modmul x y q t; pad_single_axis t 0 0 o;"},
        {"copies", 0,
         NEW_TALL "_modmul_ttc X Y 97 t; m = moveaxis t 0 1; pad_single_axis m 0 0 o;"},
        /* others write anywhere */
        {"copies", 1, NEW_TALL "set_const_val t 5; m = moveaxis t 0 1; pad_single_axis m 0 0 o;"},
        {"copies", 1, NEW "take_along_axis x index 0 t; pad_single_axis t 0 0 o;"},
        {"copies", 1,
         "t = empty (6,) :int64; axis_modsum x 0 q t; f = get_slice X [:,1]; pad_single_axis t 0 0 "
         "f;"},
        /* the target is an input */
        {"copies", 0, NEW "modmul x o q t; pad_single_axis t 0 0 o;"},
        /* the target is used in between, or is not */
        {"copies", 0, NEW "modmul x y q t; modsum o y q z; pad_single_axis t 0 0 o;"},
        {"copies", 0, NEW "modmul x y q t; modsum x y q o; pad_single_axis t 0 0 o;"},
        {"copies", 1, NEW "modmul x y q t; modsum x y q z; pad_single_axis t 0 0 o;"},
        /* a part of what is written, and all of it to a part */
        {"copies", 0,
         NEW
         "modmul x y q t; m = get_slice t [0:2]; f = get_slice o [0:2]; pad_single_axis m 0 0 f;"},
        {"copies", 1,
         "t = empty (2,6) :int64; m = get_slice x [0:2]; modneg m q t; f = get_slice o [2:4]; "
         "pad_single_axis t 0 0 f;"},
        /* somebody else reads it, or it is there from before */
        {"copies", 0, NEW "modmul x y q t; pad_single_axis t 0 0 o; get t;"},
        {"copies", 0, "modmul x y q v; pad_single_axis v 0 0 o;"},
        {"copies", 0, NEW "modmul x y q t; end; segment more; pad_single_axis t 0 0 o;"},
        /* not further than the window */
        {"copies", 1, NEW "modmul x y q t; between 63; pad_single_axis t 0 0 o;"},
        {"copies", 0, NEW "modmul x y q t; between 64; pad_single_axis t 0 0 o;"},
    };
    EXPECT(programs);
}

#define DIGITS "d = empty (6,4,3) :int64;"

static void copies_that_are_read_through(void **state)
{
    (void)state;
    static const struct program programs[] = {
        {"copies", 1,
         "m = moveaxis x 0 1; t = contiguous m;" DIGITS "apply_g_decomp t 3 4 d; get d;"},
        {"copies", 1, "m = moveaxis x 0 1; t = contiguous m; pad_single_axis t 0 0 X;"},
        /* elementwise operations want rows */
        {"copies", 0, "m = moveaxis x 0 1; t = contiguous m; _modsum_ttc t X 97 X;"},
        /* the source changes before, where the reader looks or elsewhere */
        {"copies", 0,
         "m = moveaxis x 0 1; t = contiguous m; set_const_val x 3;" DIGITS
         "apply_g_decomp t 3 4 d; get d;"},
        {"copies", 1,
         "m = moveaxis x 0 1; t = contiguous m; set_const_val y 3;" DIGITS
         "apply_g_decomp t 3 4 d; get d;"},
        {"copies", 1,
         "f = get_slice x [0:2]; m = moveaxis f 0 1; t = contiguous m; e = get_slice x [2:4]; "
         "set_const_val e 3; d = empty (6,2,3) :int64; apply_g_decomp t 3 4 d; get d;"},
        /* the reader writes over the source */
        {"copies", 0,
         "t = empty (4,6) :int64; pad_single_axis x 0 0 t; take_along_axis t index 0 x;"},
        {"copies", 1,
         "t = empty (4,6) :int64; pad_single_axis x 0 0 t; take_along_axis t index 0 y;"},
        /* the copy is an index, not what is gathered from */
        {"copies", 0,
         "t = empty (4,6) :int64; pad_single_axis index 0 0 t; take_along_axis x t 0 y;"},
    };
    EXPECT(programs);
}

static void operands_that_are_written_in_place(void **state)
{
    (void)state;
    static const struct program programs[] = {
        {"copies", 1, NEW "modmul x y q t; modsum t z q o;"},
        {"copies", 1, NEW "modmul x y q t; modsum z t q o;"},
        {"copies", 0, NEW "modmul x o q t; modsum t z q o;"},
        {"copies", 0, NEW "modmul x y q t; modsum t o q o;"},
        {"copies", 0, NEW "modmul x y q t; modsum t t q o;"},
        {"copies", 0, NEW "modmul x y q t; mod o q z; modsum t z q o;"},
        {"copies", 1, NEW "modmul x y q t; mod x q z; modsum t z q o;"},
        {"copies", 0, NEW "modmul x y q t; modsum t z q o; get t;"},
        {"copies", 0, NEW "set_const_val t 97; modmul x y t o;"},
        /* rows that do not stay rows */
        {"copies", 0, NEW_TALL "_modmul_ttc X Y 97 t; m = moveaxis t 0 1; modsum m z q o;"},
        {"copies", 0, NEW_TALL "set_const_val t 5; m = moveaxis t 0 1; modsum m z q o;"},
        /* what it takes would be taken earlier, beside what is released in between */
        {"copies", 1,
         NEW "u = empty (4,6) :int64; modneg x q u; get u; modmul u y q t; d = empty (4,6) :int64; "
             "modsum t z q d; free u; get d;"},
        {"copies", 0,
         NEW "u = empty (4,6) :int64; modneg x q u; get u; modmul u y q t; free u; d = empty (4,6) "
             ":int64; modsum t z q d; get d;"},
    };
    EXPECT(programs);
}

/* ---------------------------------------------------------------- zeros, stores */

static void zeros_that_are_added(void **state)
{
    (void)state;
    static const struct program programs[] = {
        {"zeros", 1, "t = zeros (4,6) :int64; modsum x t q o;"},
        {"zeros", 1, "t = zeros (4,6) :int64; modsum t x q o;"},
        {"zeros", 0, "t = zeros (4,6) :int64; modmul x t q o;"},
        {"zeros", 0, NEW "set_const_val t 1; modsum x t q o;"},
        {"zeros", 0, "t = zeros (4,6) :int64; modsum t 5 q o;"},
        /* residues are not reduced again, by their moduli */
        {"zeros", 1, NEW "modneg x q t; mod t q o;"},
        {"zeros", 0, NEW "modneg x q t; mod t r o;"},
        {"zeros", 0, NEW "modmul x y q t; mod t q o;"}, /* of any sign */
        {"zeros", 0, "t = zeros (4,6) :int64; mod t q o;"},
        /* a copy of itself, and of a part of itself */
        {"zeros", 1, "pad_single_axis x 0 0 x;"},
        {"zeros", 0, "f = get_slice x [0:2]; e = get_slice x [2:4]; pad_single_axis f 0 0 e;"},
    };
    EXPECT(programs);
}

static void stores_that_nobody_reads(void **state)
{
    (void)state;
    static const struct program programs[] = {
        {"stores", 1, NEW "set_const_val t 1; set_const_val t 2; get t;"},
        {"stores", 0, NEW "set_const_val t 1; get t; set_const_val t 2; get t;"},
        {"stores", 1, NEW "set_const_val t 1; modneg x q t; get t;"},
        {"stores", 0, NEW "set_const_val t 1; modsum x t q t; get t;"},
        {"stores", 0, NEW "set_const_val t 1; f = get_slice t [0:2]; set_const_val f 2; get t;"},
        {"stores", 1, NEW "_modmul_ttc x y 97 t; free t;"},
        {"stores", 2, NEW "set_const_val t 1; _modsum_ttc x t 97 t; free t;"},
        /* moduli that are data may refuse */
        {"stores", 0, NEW "modmul x y q t; free t;"},
        {"stores", 0, NEW "take_along_axis x index 0 t; free t;"},
        /* a later segment, and what was there before */
        {"stores", 0, NEW "set_const_val t 1; end; segment more; set_const_val t 2; get t;"},
        {"stores", 0, "set_const_val o 1; set_const_val o 2;"},
    };
    EXPECT(programs);
}

/* ---------------------------------------------------------------- chains */

static void chains_of_two(void **state)
{
    (void)state;
    static const struct program programs[] = {
        {"chains", 1, NEW "modmul o y q t; modsum t z q o; free t;"},
        {"chains", 1, NEW "modmul o y q t; modsum z t q o; free t;"},
        {"chains", 1, NEW "modmul y o q t; modneg t q o; free t;"},
        {"chains", 1, NEW "modneg x q t; modmul t o q o; free t;"},
        {"chains", 1, NEW "modmul o y q t; modsum t z q o;"},
        /* no operand is the output; in its own place */
        {"chains", 0, NEW "modmul x y q t; modsum t z q o; free t;"},
        {"chains", 1, "modmul o y q o; modsum o z q o;"},
        {"chains", 0, NEW "modmul o y q t; modsum t t q o; free t;"},
        /* other moduli, of rows in the place of columns */
        {"chains", 0, NEW "modmul o y q t; modsum t z r o; free t;"},
        {"chains", 1, NEW "modmul o y rows t; modsum t z rows o; free t;"},
        {"chains", 0, NEW "modmul o y 97 t; modsum t z 89 o; free t;"},
        /* what is between is read, or overwritten */
        {"chains", 0, NEW "modmul o y q t; modsum t z q o; get t;"},
        {"chains", 1, NEW "modmul o y q t; modsum t z q o; set_const_val t 1; get t;"},
        {"chains", 0,
         NEW "modmul o y q t; modsum t z q o; f = get_slice t [0]; set_const_val f 1; get t;"},
        {"chains", 0, NEW "modmul o y q v; modsum v z q o;"},
        {"chains", 0,
         NEW "modmul o y q t; f = get_slice t [0:2]; g = get_slice z [0:2]; e = get_slice o [0:2]; "
             "modsum f g q e; free t;"},
        /* what happens in between: data that may refuse, and inputs that change */
        {"chains", 0, NEW "modmul o y q t; modsum x x r x; modsum t z q o;"},
        {"chains", 1, NEW "modmul o y q t; _modsum_ttc x x 97 x; modsum t z q o;"},
        {"chains", 0, NEW "modmul o y q t; set_const_val y 3; modsum t z q o;"},
        {"chains", 1, NEW "modmul o y q t; set_const_val z 3; modsum t z q o;"},
        /* not further than the window */
        {"chains", 1, NEW "modmul o y q t; between 14; modsum t z q o;"},
        {"chains", 0, NEW "modmul o y q t; between 16; modsum t z q o;"},
        /* an input that overlaps the output, beside it */
        {"chains", 0,
         "f = get_slice b [0:24]; g = get_slice b [1:25]; t = empty (24,) :int64; _modmul_ttc f g "
         "97 t; _modsum_ttc t f 97 f; free t;"},
        {"chains", 1,
         "f = get_slice b [0:24]; g = get_slice b [24:48]; t = empty (24,) :int64; _modmul_ttc f g "
         "97 t; _modsum_ttc t f 97 f; free t;"},
    };
    EXPECT(programs);
}

/* Inverse transforms [2,1,2,4] and a product by a factor of each modulus. */

static void declare_transform(struct script *script)
{
    script_segment_start(script, "inputs");
    script_upload(script, "m", DTYPE_INT64, 1, (int64_t[]){2}, (int64_t[]){97, 193});
    upload(script, "a", 4, (int64_t[]){2, 1, 2, 4}, 0, 96);
    upload(script, "b", 4, (int64_t[]){2, 1, 2, 4}, 0, 96);
    upload(script, "l", 1, (int64_t[]){40}, 0, 96);
    upload(script, "ipsi", 2, (int64_t[]){2, 4}, 0, 96);
    upload(script, "n_inv", 1, (int64_t[]){2}, 1, 96);
    upload(script, "f", 2, (int64_t[]){2, 1}, -96, 96);
    upload(script, "of_row", 4, (int64_t[]){2, 1, 2, 1}, -96, 96);
    upload(script, "of_place", 2, (int64_t[]){2, 4}, -96, 96);
    script_upload(script, "perm", DTYPE_INT64, 1, (int64_t[]){4}, (int64_t[]){0, 1, 2, 3});
    script_call(script, "k", "unsqueeze", "m 1");
    script_segment_end(script);
    script_segment_start(script, "compute");
}

#define INTT "intt a -1 perm none m none none ipsi n_inv t 0;"
#define INTT_IN_PLACE "intt a -1 perm none m none none ipsi n_inv a 0;"
#define NEW_ROWS "t = empty (2,1,2,4) :int64;"

static void transforms_that_are_scaled(void **state)
{
    (void)state;
    static const struct program programs[] = {
        {"chains", 1, NEW_ROWS INTT "modmul t f k b; free t;"},
        {"chains", 1, NEW_ROWS INTT "modmul f t k b; free t;"},
        {"chains", 1, INTT_IN_PLACE "modmul a f k a;"},
        {"chains", 1, NEW_ROWS INTT "modmul t f k a; free t;"},
        {"chains", 0, NEW_ROWS INTT "modsum t f k b; free t;"},
        {"chains", 0, NEW_ROWS INTT "modmul t 5 k b; free t;"},
        {"chains", 0, NEW_ROWS INTT "modmul t of_row k b; free t;"},
        {"chains", 0, NEW_ROWS INTT "modmul t of_place k b; free t;"},
        {"chains", 0, NEW_ROWS INTT "modmul t f 97 b; free t;"},
        {"chains", 0, NEW_ROWS INTT "p = reshape m [2,1,1,1]; modmul t f p b; free t;"},
        {"chains", 0, NEW_ROWS INTT "modmul t f k b; get t;"},
        /* the output lies otherwise, and where inputs are */
        {"chains", 0,
         NEW_ROWS INTT "c = empty (2,1,4,2) :int64; e = moveaxis c 2 3; modmul t f k e; get c;"},
        {"chains", 0,
         "e = get_slice l [0:16]; a = reshape e [2,1,2,4]; g = get_slice l [4:20]; b = reshape g "
         "[2,1,2,4];" NEW_ROWS INTT "modmul t f k b; free t;"},
        {"chains", 1,
         "e = get_slice l [0:16]; a = reshape e [2,1,2,4]; g = get_slice l [16:32]; b = reshape g "
         "[2,1,2,4];" NEW_ROWS INTT "modmul t f k b; free t;"},
        {"chains", 0,
         "g = get_slice l [4:20]; b = reshape g [2,1,2,4]; ipsi = get_slice l [12:20]; ipsi = "
         "reshape ipsi [2,4];" NEW_ROWS INTT "modmul t f k b; free t;"},
    };
    EXPECT_AFTER(declare_transform, programs, "abl");
    /* Rows become one transform, halves of them do not. */
    static const struct program parts[] = {
        {"batches", 1,
         "e = get_slice a [0:1]; g = get_slice a [1:2]; intt e -1 perm none m none none ipsi n_inv "
         "e 0; intt g -1 perm none m none none ipsi n_inv g 0;"},
        {"batches", 0,
         "h = get_slice l [0:32]; h = reshape h [2,2,2,4]; e = get_slice h [...,0:2]; g = "
         "get_slice h [...,2:4]; i = get_slice ipsi [:,0:2]; j = get_slice perm [0:2]; intt e -1 j "
         "none m none none i n_inv e 0; intt g -1 j none m none none i n_inv g 0;"},
    };
    EXPECT_AFTER(declare_transform, parts, "al");
}

/* ---------------------------------------------------------------- batches, products */

#define PARTS(first, second)                                                        \
    "f = get_slice x " first "; g = get_slice o " first "; d = get_slice x " second \
    "; e = get_slice o " second ";"

static void slices_that_become_one(void **state)
{
    (void)state;
    static const struct program programs[] = {
        {"batches", 1, PARTS("[0:2]", "[2:4]") "mod f q g; mod d q e;"},
        {"batches", 1, PARTS("[:,0:3]", "[:,3:6]") "_mod_tc f 97 g; _mod_tc d 97 e;"},
        {"batches", 1, PARTS("[0]", "[1]") "mod f q g; mod d q e;"},
        {"batches", 1, PARTS("[:,0:6:2]", "[:,1:6:2]") "_mod_tc f 97 g; _mod_tc d 97 e;"},
        /* backwards, of other sizes, and apart in two directions */
        {"batches", 0, PARTS("[2:4]", "[0:2]") "mod f q g; mod d q e;"},
        {"batches", 0, PARTS("[1:2]", "[0:1]") "mod f q g; mod d q e;"},
        {"batches", 1, PARTS("[0:2,0:3]", "[2:4,3:6]") "_mod_tc f 97 g; _mod_tc d 97 e;"},
        {"batches", 0, PARTS("[0:2,0:3]", "[2:4,0:2]") "_mod_tc f 97 g; _mod_tc d 97 e;"},
        {"batches", 1, PARTS("[0:1]", "[1:4]") "mod f q g; mod d q e;"},
        {"batches", 0, PARTS("[0:1]", "[2:4]") "mod f q g; mod d q e;"},
        /* other values, moduli and kinds */
        {"batches", 0, PARTS("[0:2]", "[2:4]") "mod f q g; mod d r e;"},
        {"batches", 0, PARTS("[0:2]", "[2:4]") "_mod_tc f 97 g; _mod_tc d 89 e;"},
        {"batches", 0, PARTS("[0:2]", "[2:4]") "mod f q g; modneg d q e;"},
        {"batches", 0, PARTS("[0:2]", "[2:4]") "set_const_val g 1; set_const_val e 2;"},
        {"batches", 1, PARTS("[0:2]", "[2:4]") "set_const_val g 1; set_const_val e 1;"},
        {"batches", 0,
         PARTS("[:,0:3]",
               "[:,3:6]") "p = get_slice q [0:3]; s = get_slice q [3:6]; mod f p g; mod d s e;"},
        /* one reads what the other writes */
        {"batches", 0, PARTS("[0:2]", "[2:4]") "mod f q d; mod d q e;"},
        {"batches", 0, PARTS("[0:2]", "[2:4]") "mod g q e; mod e q g;"},
    };
    EXPECT(programs);
}

#define PRODUCT "t = empty (4,4,6) :int64; c = unsqueeze x 0; d = unsqueeze y 1;"

static void products_that_are_summed(void **state)
{
    (void)state;
    static const struct program programs[] = {
        {"products", 1, PRODUCT "modmul c d q t; axis_modsum t 1 q o;"},
        {"products", 1, PRODUCT "modmul c d q t; axis_modsum t 0 q o;"},
        {"products", 0, PRODUCT "modmul c d q t; axis_modsum t 1 r o;"},
        {"products", 0, PRODUCT "modsum c d q t; axis_modsum t 1 q o;"},
        {"products", 0, NEW "modmul x 5 q t; s = empty (6,) :int64; axis_modsum t 0 q s; get s;"},
        {"products", 0, PRODUCT "modmul c d q t; axis_modsum t 1 q o; get t;"},
        {"products", 0, PRODUCT "modmul c d q t; axis_modsum t 1 q x;"},
        {"products", 0, PRODUCT "modmul c d q t; set_const_val y 2; axis_modsum t 1 q o;"},
        {"products", 0, PRODUCT "modmul c d q t; mod z r v; axis_modsum t 1 q o;"},
        {"products", 1, PRODUCT "modmul c d q t; _mod_tc z 97 v; axis_modsum t 1 q o;"},
        {"products", 0, PRODUCT "modmul c d q t; s = get_slice t [:,0:2]; axis_modsum s 1 q o;"},
        {"products", 0, PRODUCT "modmul c d rows t; axis_modsum t 1 q o;"},
        /* one axis in front of reps and n, and two */
        {"products", 1,
         "t = empty (2,2,2,4,6) :int64; d = empty (2,2,2,1,6) :int64; set_const_val d 3; c = "
         "reshape x [1,1,1,4,6]; modmul c d q t; s = empty (2,2,2,6) :int64; axis_modsum t 3 q s; "
         "get s;"},
        {"products", 0,
         "t = empty (2,2,2,2,4,6) :int64; d = empty (2,2,2,2,1,6) :int64; set_const_val d 3; c = "
         "reshape x [1,1,1,1,4,6]; modmul c d q t; s = empty (2,2,2,2,6) :int64; axis_modsum t 4 q "
         "s; get s;"},
    };
    EXPECT(programs);
}

/* a has seven terms, and o room for four digits; u, v and w have weights of three, three and one.
 */
static void declare_digits(struct script *script)
{
    script_segment_start(script, "inputs");
    script_upload(script, "m", DTYPE_INT64, 1, (int64_t[]){2}, (int64_t[]){97, 193});
    script_upload(script, "n", DTYPE_INT64, 1, (int64_t[]){2}, (int64_t[]){97, 89});
    upload(script, "a", 2, (int64_t[]){5, 7}, -1000, 1000);
    upload(script, "o", 3, (int64_t[]){5, 4, 2}, -1000, 1000);
    upload(script, "u", 2, (int64_t[]){3, 2}, -1000, 1000);
    upload(script, "v", 2, (int64_t[]){3, 2}, -1000, 1000);
    upload(script, "w", 2, (int64_t[]){1, 2}, -1000, 1000);
    upload(script, "x", 2, (int64_t[]){3, 4}, -1000, 1000);
    upload(script, "y", 3, (int64_t[]){5, 3, 2}, -1000, 1000);
    script_segment_end(script);
    script_segment_start(script, "compute");
}

/* The sum of a's terms by weights, modulo q, to o's place. */
#define DIGIT(terms, count, weights, q, place)                                             \
    "c = get_slice a [:," terms "]; c = unsqueeze c -1; t = empty (5," count ",2) :int64;" \
    "e = get_slice o [:," place "]; modmul c " weights " " q " t; axis_modsum t 1 " q " e;"
#define FIRST DIGIT("0:3", "3", "u", "m", "0")
#define SECOND DIGIT("3:6", "3", "v", "m", "1")
#define THIRD DIGIT("6:7", "1", "w", "m", "2")

static void digits_that_become_one(void **state)
{
    (void)state;
    /* a change for each digit's sum, and for each that joins another one */
    static const struct program programs[] = {
        {"products,bases", 3, FIRST SECOND},
        {"products,bases", 5, FIRST SECOND THIRD},
        {"products,bases", 3, SECOND THIRD},
        {"products,bases", 3, FIRST "_mod_tc y 97 y;" SECOND},
        /* in another order, behind one of fewer terms, and not one behind the other */
        {"products,bases", 2, SECOND FIRST},
        {"products,bases", 4,
         FIRST DIGIT("3:4", "1", "w", "m", "1") DIGIT("4:7", "3", "v", "m", "2")},
        {"products,bases", 2, FIRST DIGIT("4:7", "3", "v", "m", "1")},
        {"products,bases", 2, DIGIT("0:1", "1", "w", "m", "0") DIGIT("1:4", "3", "v", "m", "1")},
        {"products,bases", 4, FIRST SECOND DIGIT("6:7", "1", "w", "m", "3")},
        /* the same output, other moduli, and weights that are not contiguous or vary along n */
        {"products,bases", 2, FIRST DIGIT("3:6", "3", "v", "m", "0")},
        {"products,bases", 2, FIRST DIGIT("3:6", "3", "v", "n", "1")},
        {"products,bases", 2, "v = get_slice x [:,0:2];" FIRST SECOND},
        {"products,bases", 2, FIRST DIGIT("3:6", "3", "y", "m", "1")},
        /* what comes between reads or writes what the second has */
        {"products,bases", 2,
         FIRST "f = get_slice o [:,1]; g = get_slice y [:,1]; mod f m g;" SECOND},
        {"products,bases", 2, FIRST "set_const_val v 3;" SECOND},
        {"products,bases", 2, FIRST "set_const_val a 3;" SECOND},
    };
    EXPECT_AFTER(declare_digits, programs, "oy");
}

/* Key products that are added to what is not negative where they are made. */

static void declare_key(struct script *script)
{
    script_segment_start(script, "inputs");
    script_upload(script, "m", DTYPE_INT64, 1, (int64_t[]){2}, (int64_t[]){97, 193});
    script_upload(script, "n", DTYPE_INT64, 1, (int64_t[]){4}, (int64_t[]){97, 193, 97, 193});
    upload(script, "a", 4, (int64_t[]){3, 5, 2, 4}, -1000, 1000);
    upload(script, "b", 3, (int64_t[]){5, 2, 4}, -1000, 1000);
    upload(script, "o", 3, (int64_t[]){3, 2, 4}, -1000, 1000);
    upload(script, "p", 3, (int64_t[]){3, 2, 4}, -1000, 1000);
    script_call(script, "k", "unsqueeze", "m 1");
    script_segment_end(script);
    script_segment_start(script, "compute");
}

#define KEY "t = zeros (3,2,4) :int64; modmul_axis_sum a b m t -1;"
#define SQUARE "modmul o o k o;"

static void sums_that_are_added(void **state)
{
    (void)state;
    /* first the sum is only written, and zeros are not: two changes */
    static const struct program programs[] = {
        {"products,zeros,stores", 3, SQUARE KEY "modsum o t k o;"},
        {"products,zeros,stores", 3, SQUARE KEY "modsum t o k o;"},
        {"products,zeros,stores", 2, KEY "modsum o t k o;"},
        {"products,zeros,stores", 2, SQUARE KEY "modsum o t k p;"},
        {"products,zeros,stores", 2, SQUARE KEY "modsum o t 97 o;"},
        {"products,zeros,stores", 2, SQUARE KEY "modsum o t n o;"},
        {"products,zeros", 1,
         SQUARE KEY "l = get_slice n [0:2]; l = unsqueeze l 1; modsum o t l o;"},
        {"products,zeros,stores", 2, SQUARE KEY "modsum o t k o; get t;"},
        {"products,zeros,stores", 2, SQUARE KEY "modneg o k p; modsum o t k o;"},
        {"products,zeros,stores", 3, SQUARE KEY "modneg p k p; modsum o t k o;"},
        {"products,zeros", 1,
         SQUARE KEY
         "u = moveaxis t 1 2; v = reshape o [3,4,2]; w = reshape m [1,1,2]; modsum v u w v;"},
        {"products,zeros", 1,
         SQUARE KEY "f = get_slice t [0:2]; g = get_slice o [0:2]; modsum g f k g;"},
    };
    EXPECT_AFTER(declare_key, programs, "op");
    /* Other elements of the sum's moduli; and of one modulus, those of rows. */
    static const struct program others[] = {
        {"products,zeros,stores", 3,
         "m = get_slice n [0:2];" SQUARE KEY "l = unsqueeze m 1; modsum o t l o;"},
        {"products,zeros,stores", 2,
         "m = get_slice n [0:2];" SQUARE KEY
         "l = get_slice n [0:4:2]; l = unsqueeze l 1; modsum o t l o;"},
        {"products,zeros,stores", 2,
         "m = get_slice n [0:1]; a = get_slice a [:,:,0:1]; b = get_slice b [:,0:1]; k = get_slice "
         "k [0:1]; o = get_slice o [:,0:1];" SQUARE
         "t = zeros (3,1,4) :int64; modmul_axis_sum a b m t -1; l = get_slice n [0:3]; l = reshape "
         "l [3,1,1]; modsum o t l o;"},
    };
    EXPECT_AFTER(declare_key, others, "op");
}

/* ---------------------------------------------------------------- origins */

/* The step of a kind, its one in the plan. */
static const struct step *step_of(const struct plan *plan, enum step_kind kind)
{
    const struct step *step = plan->steps;
    while (step->kind != kind)
        step++;
    return step;
}

/* Each input of merged steps is reported under its original name. */
static void inputs_keep_their_names(void **state)
{
    (void)state;
    static const struct {
        struct program program;
        enum step_kind kind;
        const char *inputs[STEP_INPUTS]; /* operation and parameter */
    } cases[] = {
        {{"copies", 1,
          "m = moveaxis x 0 1; t = empty (6,4) :int64; pad_single_axis m 0 0 t; i = moveaxis index "
          "0 1; i = contiguous i; take_along_axis t i 0 X;"},
         STEP_GATHER,
         {"pad_single_axis a", "take_along_axis idx"}},
        {{"chains", 1, NEW "modneg x q t; modmul o t q o;"},
         STEP_CHAIN,
         {"modneg a", NULL, "modneg p", "modmul a"}},
        {{"chains", 1, NEW "modmul x o q t; modsum t o q o;"},
         STEP_CHAIN,
         {"modmul a", "modmul b", "modmul p", "modsum b"}},
        {{"products", 1, PRODUCT "modmul c d q t; axis_modsum t 0 q o;"},
         STEP_MODMUL_AXIS_SUM,
         {"modmul a", "modmul b", "modmul p"}},
        {{"products", 1, PRODUCT "modmul c d q t; axis_modsum t 1 q o;"},
         STEP_MODMUL_AXIS_SUM,
         {"modmul b", "modmul a", "modmul p"}},
        {{"products,bases", 3,
          FIRST "c = get_slice a [:,3:6]; c = unsqueeze c -1; t = empty (5,3,2) :int64; e = "
                "get_slice o [:,1]; _modmul_ttt v c m t; axis_modsum t 1 m e;"},
         STEP_BASE_CONVERSION,
         {"modmul a", "modmul b", "modmul p", NULL, "_modmul_ttt a"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct script script = {0};
        (cases[i].kind == STEP_BASE_CONVERSION ? declare_digits : declare)(&script);
        add_lines(&script, cases[i].program.lines);
        script_segment_end(&script);
        script_plan(&script);
        assert_int_equal(plan_optimise(script.plan, set_of(cases[i].program.pass), &error),
                         HEALCL_OK);
        const struct step *step = step_of(script.plan, cases[i].kind);
        for (int j = 0; j < STEP_INPUTS; j++) {
            char name[64];
            if (!cases[i].inputs[j])
                continue;
            snprintf(name, sizeof name, "%s %s", step_origin(step, j)->name,
                     step_input_name(step, j));
            assert_string_equal(name, cases[i].inputs[j]);
        }
        script_release(&script);
    }
}

/* A chain over numbers that are not negative leaves residues, and the plan knows it. */
static void residues_of_chains(void **state)
{
    (void)state;
    static const char lines[] = "modmul o o q o; modmul v v q v;" NEW
                                "modmul o v q t; modsum t o q o; free t; modmul o x q z;";
    struct script script = {0};
    declare(&script);
    add_lines(&script, lines);
    script_segment_end(&script);
    script_plan(&script);
    assert_int_equal(plan_optimise(script.plan, set_of("chains"), &error), HEALCL_OK);
    const struct step *chain = step_of(script.plan, STEP_CHAIN), *last = chain + 1;
    while (last->kind != STEP_MODMUL)
        last++;
    assert_int_equal(last->residues, 1);
    script_release(&script);
}

/* ---------------------------------------------------------------- views of other storages */

struct move {
    struct layout view, from, to;
    int64_t offset, strides[3]; /* of the result; offset -1: there is none */
};

#define LAYOUT1(offset, shape, stride) \
    {                                  \
        1, offset, {shape},            \
        {                              \
            stride                     \
        }                              \
    }
#define LAYOUT2(offset, shape0, shape1, stride0, stride1) \
    {                                                     \
        2, offset, {shape0, shape1},                      \
        {                                                 \
            stride0, stride1                              \
        }                                                 \
    }

static void views_that_move(void **state)
{
    (void)state;
    static const struct move moves[] = {
        {LAYOUT2(0, 4, 6, 6, 1), LAYOUT2(0, 4, 6, 6, 1), LAYOUT2(5, 4, 6, 1, 4), 5, {1, 4}},
        {LAYOUT2(0, 6, 4, 1, 6), LAYOUT2(0, 4, 6, 6, 1), LAYOUT2(5, 4, 6, 1, 4), 5, {4, 1}},
        {LAYOUT1(0, 24, 1), LAYOUT2(0, 4, 6, 6, 1), LAYOUT2(8, 4, 6, 12, 2), 8, {2}},
        {LAYOUT1(0, 24, 1), LAYOUT2(0, 4, 6, 6, 1), LAYOUT2(8, 4, 6, 7, 1), -1, {0}},
        {LAYOUT1(0, 24, 1), LAYOUT2(0, 4, 6, 8, 1), LAYOUT2(8, 4, 6, 6, 1), -1, {0}},
        {LAYOUT1(0, 12, 1), LAYOUT2(0, 4, 6, 6, 1), LAYOUT2(8, 4, 6, 6, 1), -1, {0}},
        {LAYOUT1(0, 9, 1), LAYOUT2(0, 4, 6, 6, 1), LAYOUT2(8, 4, 6, 6, 1), -1, {0}},
        {LAYOUT1(0, 48, 1), LAYOUT2(0, 4, 6, 6, 1), LAYOUT2(8, 4, 6, 6, 1), -1, {0}},
        {LAYOUT1(0, 4, 3), LAYOUT2(0, 4, 6, 6, 1), LAYOUT2(8, 4, 6, 6, 1), -1, {0}},
        {LAYOUT1(1, 24, 1), LAYOUT2(0, 4, 6, 6, 1), LAYOUT2(8, 4, 6, 6, 1), -1, {0}},
        {LAYOUT2(0, 3, 6, 0, 1), LAYOUT2(0, 4, 6, 6, 1), LAYOUT2(0, 4, 6, 1, 4), 0, {0, 4}},
        {LAYOUT2(0, 1, 6, 77, 1), LAYOUT2(0, 4, 6, 6, 1), LAYOUT2(0, 4, 6, 1, 4), 0, {77, 4}},
        /* an axis of one element has any stride, and is none of a view's */
        {LAYOUT1(0, 4, 6), LAYOUT2(0, 1, 4, 6, 6), LAYOUT2(0, 1, 4, 9, 2), 0, {2}},
    };
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        struct storage storages[2] = {{.id = 0}, {.id = 1}};
        const struct tensor view = {&storages[0], moves[i].view},
                            from = {&storages[0], moves[i].from}, to = {&storages[1], moves[i].to};
        struct tensor result;
        if (pass_move_view(&view, &from, &to, &result) != (moves[i].offset >= 0))
            fail_msg("move %zu", i);
        if (moves[i].offset < 0)
            continue;
        assert_ptr_equal(result.storage, &storages[1]);
        assert_int_equal(result.layout.offset, moves[i].offset);
        for (uint32_t axis = 0; axis < view.layout.rank; axis++) {
            assert_int_equal(result.layout.shape[axis], view.layout.shape[axis]);
            assert_int_equal(result.layout.stride[axis], moves[i].strides[axis]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_that_are_written_through),
        cmocka_unit_test(copies_that_are_read_through),
        cmocka_unit_test(operands_that_are_written_in_place),
        cmocka_unit_test(zeros_that_are_added),
        cmocka_unit_test(stores_that_nobody_reads),
        cmocka_unit_test(chains_of_two),
        cmocka_unit_test(transforms_that_are_scaled),
        cmocka_unit_test(slices_that_become_one),
        cmocka_unit_test(products_that_are_summed),
        cmocka_unit_test(digits_that_become_one),
        cmocka_unit_test(sums_that_are_added),
        cmocka_unit_test(inputs_keep_their_names),
        cmocka_unit_test(residues_of_chains),
        cmocka_unit_test(views_that_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
