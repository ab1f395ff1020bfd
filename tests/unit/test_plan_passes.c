/*
 * Passes from plan to plan: every one alone, each left out, and all together, give what the plan
 * without any does, on the reference and on a device, refusals included; over the bundled
 * transcripts, and over random programs of what passes look for: products that are summed up, sums
 * onto zeros, copies, and what comes in between. HEALCL_TEST_PROGRAMS=2000 draws as many of them,
 * by another seed.
 */
#include "helper_one_device.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "helper_script.h"
#include "helper_share.h"
#include "plan/passes.h"
#include "tools/random.h"

static const uint64_t seed = 0x9a55;
enum { PROGRAMS = 60 };

enum { ROWS = 2, TERMS = 3, N = 8, K = 2, LENGTH = 24, TENSORS = 3 };

static const int64_t shapes[3][4] = {{ROWS, TERMS, N, K}, {TERMS, N, K}, {ROWS, N, K}};

/* Digits share N terms; the last one has fewer. */
enum { DIGITS = 3 };
static int digit_terms(int i)
{
    return i + 1 < DIGITS ? (N + DIGITS - 1) / DIGITS : N / DIGITS;
}

/* ---------------------------------------------------------------- random programs */

/* Letters of tensors, by shape; a name is one of them and a digit. */
static const char letters[] = "abo";

static void upload(struct script *script, const char *name, uint32_t rank, const int64_t *shape,
                   struct random *random, bool residues)
{
    int64_t values[ROWS * TERMS * N * K];
    for (int i = 0; i < ROWS * TERMS * N * K; i++)
        values[i] = residues ? random_between(random, 0, 96) : random_value(random, DTYPE_INT64);
    script_upload(script, name, DTYPE_INT64, rank, shape, values);
}

static void declare(struct script *script, struct random *random)
{
    bool tame = random_once_in(random, 2);
    int64_t q[K], other[K], index[ROWS * N * K];
    for (int i = 0; i < K; i++) {
        q[i] = tame ? 97 + i : random_modulus(random, DTYPE_INT64);
        other[i] = random_once_in(random, 4) ? random_between(random, -1, 0) : 101;
    }
    for (int i = 0; i < ROWS * N * K; i++)
        index[i] = random_between(random, 0, N - 1 + random_once_in(random, 200));
    script_upload(script, "q", DTYPE_INT64, 1, (int64_t[]){K}, q);
    script_upload(script, "p", DTYPE_INT64, 1, (int64_t[]){K}, other);
    script_upload(script, "i", DTYPE_INT64, 3, shapes[2], index);
    for (int i = 0; i < N; i++)
        index[i] = (5 * i + 3) % N;
    script_upload(script, "perm", DTYPE_INT64, 1, (int64_t[]){N}, index);
    upload(script, "f", 1, (int64_t[]){K}, random, tame && random_once_in(random, 2));
    upload(script, "ipsi", 2, (int64_t[]){K, N}, random, tame);
    upload(script, "d", 3, (int64_t[]){1, N, K}, random, tame);
    upload(script, "w", 4, (int64_t[]){ROWS, TERMS, 1, K}, random, tame);
    for (int i = 0; i < DIGITS; i++)
        upload(script, (char[]){'u', (char)('0' + i), 0}, 2, (int64_t[]){digit_terms(i), K}, random,
               tame);
    for (int shape = 0; shape < 3; shape++)
        for (int i = 0; i < TENSORS; i++)
            upload(script, (char[]){letters[shape], (char)('0' + i), 0}, shape == 0 ? 4 : 3,
                   shapes[shape], random, tame && i > 0);
}

static const char *any(int shape, struct random *random)
{
    static char names[64][3]; /* of the statement in hand */
    static int next;
    char *name = names[next++ % 64];
    name[0] = letters[shape];
    name[1] = (char)('0' + random_between(random, 0, TENSORS - 1));
    return name;
}

static const char *moduli(struct random *random)
{
    return random_once_in(random, 6) ? "p" : "q";
}

__attribute__((format(printf, 4, 5))) static void call(struct script *script, const char *out,
                                                       const char *operation, const char *format,
                                                       ...)
{
    char text[96];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    script_call(script, out, operation, text);
}

/* The destination of a result: an existing tensor of shape 2, or a new one, by fill or not. */
static const char *new_sum(struct script *script, struct random *random)
{
    const char *out = any(2, random);
    if (random_once_in(random, 2))
        call(script, out, "zeros", "(%d,%d,%d) :int64", ROWS, N, K);
    else if (random_once_in(random, 2))
        call(script, out, "set_const_val", "%s %d", out, (int)random_between(random, -1, 1));
    return out;
}

static void add_anything(struct script *script, struct random *random)
{
    const char *out = any(2, random), *a = any(2, random);
    switch (random_between(random, 0, 7)) {
    case 0:
        call(script, NULL, "modsum", "%s %s %s %s", a, any(2, random), moduli(random), out);
        break;
    case 1: call(script, NULL, "modneg", "%s %s %s", a, moduli(random), out); break;
    case 2: call(script, NULL, "_modmul_tcc", "%s %d 97 %s", a, 5, out); break;
    case 3: call(script, out, "contiguous", "%s", a); break;
    case 4: call(script, NULL, "take_along_axis", "%s i 1 %s", a, out); break;
    case 5: script_download(script, out); break;
    default: call(script, out, "set_const_val", "%s 0", out);
    }
}

static void add_products(struct script *script, struct random *random)
{
    const char *factors[] = {any(0, random), any(1, random), "w", "b0"};
    const char *x = factors[random_between(random, 0, 3)], *y = any(0, random);
    bool is_new = !random_once_in(random, 4), downloads = random_once_in(random, 10);
    const char *products = is_new ? "t" : any(0, random), *p = moduli(random);
    if (is_new)
        call(script, "t", "empty", "(%d,%d,%d,%d) :int64", ROWS, TERMS, N, K);
    if (random_once_in(random, 2))
        call(script, NULL, "modmul", "%s %s %s %s", x, y, p, products);
    else
        call(script, NULL, "modmul", "%s %s %s %s", y, x, p, products);
    while (random_once_in(random, 3))
        add_anything(script, random);
    if (random_once_in(random, 5)) { /* a factor changes in between */
        const char *factor = random_once_in(random, 2) ? x : y;
        call(script, factor, "set_const_val", "%s 1", factor);
    }
    const char *sum = random_once_in(random, 3) ? new_sum(script, random) : any(2, random);
    if (random_once_in(random, 4)) { /* the sum lies where a factor does */
        sum = "part";
        if (x[0] == 'b') /* which all rows share */
            call(script, sum, "get_slice", "%s [0:%d]", x, ROWS);
        else
            call(script, sum, "get_slice", "%s [0:%d,1]", y, ROWS);
    }
    call(script, NULL, "axis_modsum", "%s 1 %s %s", products,
         random_once_in(random, 4) ? moduli(random) : p, sum);
    if (strcmp(sum, "part") == 0)
        script_free(script, sum);
    if (downloads)
        script_download(script, products);
    if (is_new && !random_once_in(random, 5))
        script_free(script, "t");
}

static void add_key_product(struct script *script, struct random *random)
{
    const char *out = new_sum(script, random), *a = any(0, random);
    while (random_once_in(random, 4))
        add_anything(script, random);
    call(script, "a_view", "moveaxis", "%s 1 2", a); /* [reps,n,s,k] */
    call(script, "b_view", "moveaxis", "%s 0 1", any(1, random));
    call(script, NULL, "modmul_axis_sum", "a_view b_view q none none none %s 0 -3", out);
    script_free(script, "a_view");
    script_free(script, "b_view");
}

/* A sum of products that is only added to something, of any signs, or to squares: in the same place
 * or a part of it, or elsewhere. */
static void add_added_key_product(struct script *script, struct random *random)
{
    const char *to = any(2, random), *a = any(0, random), *p = moduli(random);
    const bool by_parts = random_once_in(random, 3);
    if (random_once_in(random, 2))
        call(script, NULL, "modmul", "%s %s %s %s", to, to, p, to);
    call(script, "t", "zeros", "(%d,%d,%d) :int64", ROWS, K, N);
    call(script, "a_view", "moveaxis", "%s 1 2", a);
    call(script, "b_view", "moveaxis", "%s 0 1", any(1, random));
    call(script, "t_view", "moveaxis", "t 1 2");
    call(script, NULL, "modmul_axis_sum", "a_view b_view q none none none t_view 0 -3");
    script_free(script, "b_view");
    if (random_once_in(random, 5))
        add_anything(script, random);
    call(script, "to_view", "get_slice", by_parts ? "%s [:,0:4]" : "%s [:]", to);
    call(script, "sum_view", "get_slice", by_parts ? "t_view [:,4:8]" : "t_view [:]");
    if (random_once_in(random, 2))
        call(script, NULL, "modsum", "to_view sum_view %s to_view", p);
    else
        call(script, NULL, "modsum", "sum_view %s %s to_view",
             by_parts || !random_once_in(random, 4) ? "to_view" : any(2, random), p);
    if (random_once_in(random, 8))
        script_download(script, "t");
    for (const char *names[] = {"a_view", "t_view", "to_view", "sum_view", "t"}, **name = names;
         name < names + 5; name++)
        script_free(script, *name);
}

/* A copy whose source, a tensor of its own, is released before the copy is read. */
static void add_copy_of_released(struct script *script, struct random *random)
{
    const bool is_larger = random_once_in(random, 3);
    call(script, "t", "empty", "(%d,%d,%d) :int64", is_larger ? 2 * ROWS : ROWS, N, K);
    call(script, "part", "get_slice", "t [0:%d]", ROWS);
    call(script, NULL, "modmul", "%s %s q part", any(2, random), any(2, random));
    call(script, "part", "moveaxis", "part 1 2");
    call(script, "copy", "contiguous", "part");
    script_free(script, "part");
    script_free(script, "t");
    if (random_once_in(random, 3))
        add_anything(script, random);
    call(script, "back", "moveaxis", "copy 2 1");
    call(script, "digits", "empty", "(%d,%d,%d,3) :int8", ROWS, N, K);
    call(script, "digits", "apply_g_decomp", "back 3 4 digits");
    script_download(script, "digits");
    if (!random_once_in(random, 4)) {
        script_free(script, "back");
        script_free(script, "copy");
    }
}

static void add_copy(struct script *script, struct random *random)
{
    const char *a = any(2, random), *out = any(2, random);
    if (random_once_in(random, 2)) { /* x + 0 */
        call(script, "z", "zeros", "(%d,%d,%d) :int64", ROWS, N, K);
        call(script, NULL, "modsum", random_once_in(random, 2) ? "%s z %s %s" : "z %s %s %s",
             random_once_in(random, 4) ? "z" : a, moduli(random), out);
        script_free(script, "z");
        return;
    }
    call(script, "moved", "moveaxis", "%s 1 2", a);
    call(script, "copy", "contiguous", "moved");
    if (random_once_in(random, 3))
        add_anything(script, random);
    if (random_once_in(random, 2))
        call(script, "copy", "contiguous", "copy");
    call(script, "back", "moveaxis", "copy 2 1");
    if (random_once_in(random, 2)) {
        call(script, "digits", "empty", "(%d,%d,%d,3) :int8", ROWS, N, K);
        call(script, "digits", "apply_g_decomp", "back 3 4 digits");
        script_download(script, "digits");
    } else {
        call(script, NULL, "pad_single_axis", "back 0 0 %s", out);
    }
    script_free(script, "copy");
    script_free(script, "back");
    script_free(script, "moved");
}

/* A part of a tensor, of several that lie side by side, under a name of its own. */
static void slice(struct script *script, const char *name, const char *of, const char *format,
                  int first)
{
    char index[32];
    snprintf(index, sizeof index, format, first, first + 1);
    call(script, name, "get_slice", "%s %s", of, index);
}

/* One operation on the slices of tensors, along an axis that is drawn, in any order. */
static void add_slices(struct script *script, struct random *random)
{
    static const char *const formats[] = {"[%d]", "[:,%d]", "[%d:%d]", "[:,%d:%d]", "[...,%d]"};
    static const int counts[] = {ROWS, N, ROWS, N, K};
    const int way = (int)random_between(random, 0, 4), which = (int)random_between(random, 0, 5);
    const char *x = any(2, random), *y = any(2, random), *z = any(2, random), *p = moduli(random);
    const bool by_last = way == 4, is_backward = random_once_in(random, 5);
    for (int i = 0; i < counts[way]; i++) {
        int at = is_backward ? counts[way] - 1 - i : i;
        slice(script, "part_x", x, formats[way], at);
        slice(script, "part_y", y, formats[way], random_once_in(random, 8) ? 0 : at);
        slice(script, "part_z", z, formats[way], at);
        if (which == 0)
            call(script, "part_z", "set_const_val", "part_z %d", i > 3);
        else if (which == 1)
            call(script, NULL, "pad_single_axis", "part_x 0 0 part_z");
        else if (by_last)
            call(script, NULL, "_modmul_ttc", "part_x part_y %d part_z", i < 6 ? 97 : 89);
        else if (which == 2)
            call(script, NULL, "mod", "part_x %s part_z", p);
        else
            call(script, NULL, which == 3 ? "modmul" : "modsum", "part_x part_y %s part_z", p);
        if (random_once_in(random, 12))
            add_anything(script, random);
        for (const char *name = "xyz"; *name; name++)
            script_free(script, (char[]){'p', 'a', 'r', 't', '_', *name, 0});
    }
}

/* Sums of products, or along an axis, whose outputs are slices: of the same factors or of others;
 * with what is only their sum's. */
static void add_sums_of_slices(struct script *script, struct random *random)
{
    const bool permutes = random_once_in(random, 2), shares = random_once_in(random, 2);
    const char *a = any(0, random), *b = any(0, random), *out = new_sum(script, random);
    const bool is_sum = random_once_in(random, 3), then_adds = random_once_in(random, 2);
    for (int i = 0; i < ROWS; i++) {
        slice(script, "part_a", a, "[%d:%d]", shares ? 0 : i);
        slice(script, "part_b", b, "[%d]", i);
        slice(script, "part_out", out, "[%d:%d]", i);
        call(script, "a_view", "moveaxis", "part_a 1 2"); /* [1,n,s,k] */
        call(script, "b_view", "moveaxis", "part_b 0 1");
        if (then_adds) {
            call(script, "own", "zeros", "(1,%d,%d) :int64", N, K);
        } else {
            call(script, "own", "get_slice", "part_out [...]");
        }
        if (is_sum)
            call(script, NULL, "axis_modsum", "part_a 1 q own");
        else
            call(script, NULL, "modmul_axis_sum", "a_view b_view q none none %s own %d -3",
                 permutes ? "perm" : "none", permutes);
        if (then_adds)
            call(script, NULL, "modsum",
                 random_once_in(random, 2) ? "own %s q part_out" : "%s own q part_out",
                 random_once_in(random, 3) ? "part_out" : "d");
        for (const char *names[] = {"part_a", "part_b", "part_out", "a_view", "b_view", "own"},
                        **name = names;
             name < names + 6; name++)
            script_free(script, *name);
    }
}

/* Base conversions of digits, in order or not, into a tensor where they take turns. */
static void add_digits(struct script *script, struct random *random)
{
    const char *a = any(1, random);
    const bool is_backward = random_once_in(random, 8);
    call(script, "rows", "reshape", "%s [%d,%d]", a, TERMS * K, N);
    call(script, "raised", "empty", "(%d,%d,%d) :int64", TERMS * K, DIGITS, K);
    for (int j = 0; j < DIGITS; j++) {
        const int i = is_backward ? DIGITS - 1 - j : j, first = i * digit_terms(0);
        const int from = random_once_in(random, 10) ? 0 : first;
        call(script, "part", "get_slice", "rows [:,%d:%d]", from, from + digit_terms(i));
        call(script, "column", "unsqueeze", "part -1");
        slice(script, "target", "raised", "[:,%d]", i);
        call(script, "t", "empty", "(%d,%d,%d) :int64", TERMS * K, digit_terms(i), K);
        call(script, NULL, "modmul", "column u%d q t", i);
        if (random_once_in(random, 12))
            add_anything(script, random);
        if (random_once_in(random, 12))
            call(script, NULL, "set_const_val", "u%d 3", (i + 1) % DIGITS);
        call(script, NULL, "axis_modsum", "t 1 q target");
        for (const char **name = (const char *[]){"part", "column", "target", "t", NULL}; *name;
             name++)
            script_free(script, *name);
    }
    script_download(script, "raised");
    script_free(script, "raised");
    script_free(script, "rows");
}

/* An operation of one or two operands. */
static void add_modular(struct script *script, struct random *random, const char *x, const char *y,
                        const char *p, const char *out)
{
    static const char *const names[] = {"modmul", "modsum", "mod", "modneg"};
    int64_t which = random_between(random, 0, 3);
    if (which < 2 && random_once_in(random, 2)) {
        const char *other = x;
        x = y;
        y = other;
    }
    if (which < 2)
        call(script, NULL, names[which], "%s %s %s %s", x, y, p, out);
    else
        call(script, NULL, names[which], "%s %s %s", x, p, out);
}

/* Elementwise operations on what others have left, in place or in a tensor that is used again; of
 * dense tensors, of slices and of what repeats. */
static void add_chains(struct script *script, struct random *random)
{
    const char *p = moduli(random);
    bool strided = random_once_in(random, 2);
    for (const char *name = "xyz"; *name; name++) {
        char names[] = {'l', '_', *name, 0};
        if (strided)
            slice(script, names, any(0, random), "[:,%d]", (int)random_between(random, 0, 2));
        else
            call(script, names, "get_slice", "%s [...]", any(2, random));
    }
    call(script, "t", "zeros", "(%d,%d,%d) :int64", ROWS, N, K);
    for (int64_t left = random_between(random, 1, 4); left > 0; left--) {
        bool in_place = random_once_in(random, 2);
        const char *between = in_place ? "l_z" : "t";
        add_modular(script, random, "l_x", random_once_in(random, 2) ? "l_y" : "d", p, between);
        if (random_once_in(random, 8))
            add_anything(script, random);
        add_modular(script, random, between, random_once_in(random, 2) ? "l_y" : "l_z",
                    random_once_in(random, 6) ? moduli(random) : p, "l_z");
    }
    if (random_once_in(random, 6))
        script_download(script, "t");
    for (const char *names[] = {"l_x", "l_y", "l_z", "t"}, **name = names; name < names + 4; name++)
        script_free(script, *name);
}

/* A tensor of shape 2: one that exists, a part of another, one that repeats, or one that is freed
 * soon. */
static const char *draw_factor(struct script *script, struct random *random, const char *name)
{
    switch (random_between(random, name[0] == 'y' ? -1 : 0, 4)) {
    case -1: call(script, name, "expand", "d 0 %d", ROWS); break; /* which nothing writes */
    case 0: slice(script, name, any(0, random), "[:,%d]", (int)random_between(random, 0, 2)); break;
    case 1: call(script, name, "contiguous", "%s", any(2, random)); break;
    case 2:
        call(script, name, "empty", "(%d,%d,%d) :int64", ROWS, N, K);
        call(script, NULL, random_once_in(random, 2) ? "modmul" : "modsum", "%s %s %s %s",
             any(2, random), any(2, random), moduli(random), name);
        break;
    default: call(script, name, "get_slice", "%s [...]", any(2, random));
    }
    return name;
}

/* Products that are added one after the other, to themselves or to something: each in a tensor of
 * its own or in place. In between, factors are freed and written, and something may be refused. */
static void add_loop(struct script *script, struct random *random)
{
    const char *p = moduli(random), *const to = any(2, random);
    const bool in_place = random_once_in(random, 2), is_calm = random_once_in(random, 2);
    if (random_once_in(random, 2))
        call(script, "sum", "get_slice", "%s [...]", to);
    else
        call(script, "sum", "contiguous", "%s", to);
    for (int64_t i = 0, count = random_between(random, 1, 8); i < count; i++) {
        const char *x = draw_factor(script, random, "x"), *y = draw_factor(script, random, "y");
        const bool begins = i == 0 && random_once_in(random, 2);
        call(script, "t", "empty", "(%d,%d,%d) :int64", ROWS, N, K);
        const bool is_factor_sum = random_once_in(random, 5); /* (x+y)*y */
        if (is_factor_sum)
            call(script, NULL, "modsum", "%s %s %s t", x, y, p);
        const char *product = begins ? "sum" : "t";
        call(script, NULL, "modmul", "%s %s %s %s", is_factor_sum ? "t" : x, y, p, product);
        if (random_once_in(random, 2))
            script_free(script, "x");
        else if (random_once_in(random, 3))
            call(script, NULL, "modneg", "x %s x", p);
        if (!is_calm && random_once_in(random, 3))
            add_anything(script, random);
        const char *sum = in_place ? "sum" : "next";
        const char *q = random_once_in(random, 12) ? moduli(random) : p;
        if (!in_place)
            call(script, "next", "empty", "(%d,%d,%d) :int64", ROWS, N, K);
        if (begins || random_once_in(random, 20))
            call(script, sum, "contiguous", "%s", product);
        else if (random_once_in(random, 2))
            call(script, NULL, "modsum", "sum %s %s %s", product, q, sum);
        else
            call(script, NULL, "modsum", "%s sum %s %s", product, q, sum);
        if (random_once_in(random, 16))
            script_download(script, product);
        if (!in_place)
            call(script, "sum", "new_reference", "next");
    }
    script_download(script, "sum");
    for (const char *names[] = {"y", "t", "sum", "next"}, **name = names;
         name < names + 4 - in_place; name++)
        script_free(script, *name);
}

/* What the calls of a product of two ciphertexts may do: bits. */
enum { ADDS_TWICE = 1, SWAPS = 2, SUMS_FACTOR = 4, SQUARES = 8, PART_WAYS = 16 };

/* Adds x[0]*y[0] to out[0], and x[0]*y[1] + x[1]*y[0] to out[1]; x[0] becomes x[0] + z[0] before.
 */
static void add_part_products(struct script *script, struct random *random, const char *const of[4],
                              const char *p, const char *empty, int way)
{
    static const char *const parts[] = {"x_0", "x_1", "y_0", "y_1", "z_0", "z_1", "o_0", "o_1"};
    for (int i = 0; i < 8; i++)
        slice(script, parts[i], of[i / 2], "[%d]", i % 2);
    if (way & SUMS_FACTOR)
        call(script, NULL, "modsum", "x_0 z_0 %s x_0", p);
    call(script, "t", "empty", "%s", empty);
    call(script, "u", "empty", "%s", empty);
    call(script, NULL, "modmul", "x_0 y_0 %s t", p);
    call(script, NULL, "modsum", "o_0 t %s o_0", p);
    if (way & SQUARES) {
        call(script, NULL, "modmul", "z_0 z_0 %s t", p);
        call(script, NULL, "modsum", "o_0 t %s o_0", p);
    }
    if (random && random_once_in(random, 5))
        add_anything(script, random);
    call(script, NULL, "modmul", way & SWAPS ? "y_1 x_0 %s t" : "x_0 y_1 %s t", p);
    call(script, NULL, "modmul", "x_1 y_0 %s u", p);
    if (random && random_once_in(random, 5))
        add_anything(script, random);
    if (way & ADDS_TWICE)
        call(script, NULL, "modsum", "o_1 t %s o_1", p);
    else
        call(script, NULL, "modsum", "t u %s u", p);
    call(script, NULL, "modsum", "o_1 u %s o_1", p);
    if (random && random_once_in(random, 12))
        script_download(script, "t");
    for (int i = 0; i < 8; i++)
        script_free(script, parts[i]);
    script_free(script, "t");
    script_free(script, "u");
}

static void add_parts(struct script *script, struct random *random)
{
    const char *of[] = {any(2, random), any(2, random), any(2, random), any(2, random)};
    char empty[32];
    snprintf(empty, sizeof empty, "(%d,%d) :int64", N, K);
    if (random_once_in(random, 2)) /* not the contents of another one */
        call(script, of[3], "zeros", "(%d,%d,%d) :int64", ROWS, N, K);
    add_part_products(script, random, of, moduli(random), empty,
                      (int)random_between(random, 0, PART_WAYS - 1));
}

/* Transforms, sums with them, and products by a factor for each modulus, of any sign. */
static void add_transform(struct script *script, struct random *random)
{
    bool in_place = random_once_in(random, 2), forward = random_once_in(random, 2);
    const char *p = random_once_in(random, 6) ? moduli(random) : "q";
    call(script, "l_x", "reshape", "%s [%d,%d,1,%d]", any(2, random), ROWS, N, K);
    call(script, "t", "empty", "(%d,%d,1,%d) :int64", ROWS, N, K);
    if (forward)
        call(script, NULL, "ntt",
             random_once_in(random, 2) ? "l_x -3 perm none q none none ipsi t 0 0"
                                       : "l_x -3 none none q none none ipsi t 0 1");
    else
        call(script, NULL, "intt", "l_x perm none q none none ipsi f t 0");
    call(script, "l_y", "squeeze", "t 2");
    if (random_once_in(random, 8))
        add_anything(script, random);
    if (forward) {
        const char *addends[] = {any(2, random), any(2, random), "d", "l_y"};
        const char *addend = addends[random_between(random, 0, 3)];
        const bool first = random_once_in(random, 2);
        call(script, NULL, "modsum", "%s %s %s l_y", first ? "l_y" : addend, first ? addend : "l_y",
             random_once_in(random, 12) ? moduli(random) : p);
    }
    const char *factors = random_once_in(random, 5) ? any(2, random) : "f", *out = any(2, random);
    if (random_once_in(random, 2))
        call(script, NULL, "modmul", "l_y %s %s %s", factors, p, in_place ? "l_y" : out);
    else
        call(script, NULL, "modsum", "l_y l_y %s l_y", p);
    if (in_place || random_once_in(random, 6))
        script_download(script, "l_y");
    for (const char *names[] = {"l_x", "l_y", "t"}, **name = names; name < names + 3; name++)
        script_free(script, *name);
}

static void make_program(struct script *script, struct random *random)
{
    declare(script, random);
    for (int i = 0; i < LENGTH; i++) {
        if (random_once_in(random, 6)) {
            script_segment_start(script, "part");
            add_products(script, random);
            add_copy(script, random);
            script_segment_end(script);
        }
        switch (random_between(random, 0, 12)) {
        case 0: add_products(script, random); break;
        case 1: add_key_product(script, random); break;
        case 2: add_copy(script, random); break;
        case 3: add_slices(script, random); break;
        case 5: add_chains(script, random); break;
        case 6: add_transform(script, random); break;
        case 7: add_added_key_product(script, random); break;
        case 8: add_copy_of_released(script, random); break;
        case 4: add_sums_of_slices(script, random); break;
        case 9: add_digits(script, random); break;
        case 10: add_loop(script, random); break;
        case 11: add_parts(script, random); break;
        default: add_anything(script, random);
        }
    }
    for (int shape = 0; shape < 3; shape++)
        for (int i = 0; i < TENSORS; i++)
            script_download(script, (char[]){letters[shape], (char)('0' + i), 0});
    script_plan(script);
}

/* The outcome of a plan: results, or a refusal. */
struct outcome {
    struct script_results results;
    struct healcl_error error;
    uint64_t dropped_digits;
};

static void release(struct outcome *outcome)
{
    script_results_release(&outcome->results);
    healcl_error_clear(&outcome->error);
}

static struct outcome run(const struct script *script, struct healcl_device *on)
{
    struct outcome outcome = {.dropped_digits = 0};
    struct executor *executor = NULL;
    OK(on ? device_executor_create(on, script->plan, &executor, &error)
          : reference_executor_create(script->plan, &executor, &error));
    (void)!script_run(script, executor, &outcome.results, &outcome.error);
    outcome.dropped_digits = executor->dropped_digits;
    executor->class->destroy(executor);
    return outcome;
}

static void expect_same(const struct outcome *expected, struct outcome *found, uint32_t set,
                        int program, const char *on)
{
    if (expected->error.status != found->error.status ||
        (expected->error.status && strcmp(expected->error.message, found->error.message) != 0))
        fail_msg("program %d, passes %#x, %s: '%s', not '%s'", program, set, on,
                 found->error.message, expected->error.message);
    if (!expected->error.status && (!script_same_results(&expected->results, &found->results) ||
                                    expected->dropped_digits != found->dropped_digits))
        fail_msg("program %d, passes %#x, %s: other results", program, set, on);
    release(found);
}

/* Once alone, once left out, and all together, by turns; and one that is drawn. */
static uint32_t set_of(int program, struct random *random)
{
    uint32_t one = UINT32_C(1) << program / 4 % PASS_COUNT;
    switch (program % 4) {
    case 0: return one;
    case 1: return PASSES_ALL & ~one;
    case 2: return (uint32_t)random_between(random, 0, PASSES_ALL);
    default: return PASSES_ALL;
    }
}

static void random_programs(void **state)
{
    (void)state;
    uint64_t changes[PASS_COUNT] = {0}, refusals = 0;
    const char *wanted = getenv("HEALCL_TEST_PROGRAMS");
    const int programs = wanted ? (int)strtol(wanted, NULL, 10) : PROGRAMS;
    struct random random = {seed + (uint64_t)(programs - PROGRAMS)};
    print_message("seed %#" PRIx64 "\n", random.state);
    for (int program = 0; program < programs; program++) {
        struct script script = {0};
        make_program(&script, &random);
        struct outcome expected = run(&script, NULL), found;
        uint32_t set = set_of(program, &random);
        uint64_t peak = script.plan->bytes_peak;
        OK(plan_optimise(script.plan, set, &error));
        /* factors of a multiply-add stay until it runs */
        assert_true(script.plan->bytes_peak <= peak + 4 * ROWS * N * K * sizeof(int64_t));
        for (size_t s = 0; s < script.plan->segment_count; s++)
            for (int i = 0; i < PASS_COUNT; i++)
                changes[i] += script.plan->segments[s].pass_changes[i];
        refusals += expected.error.status != HEALCL_OK;
        found = run(&script, NULL);
        expect_same(&expected, &found, set, program, "reference");
        found = run(&script, device);
        expect_same(&expected, &found, set, program, "device");
        release(&expected);
        script_release(&script);
    }
    for (int i = 0; i < PASS_COUNT; i++) {
        print_message("%s: %" PRIu64 " steps\n", passes[i].name, changes[i]);
        assert_true(changes[i] > (uint64_t)programs / 4);
    }
    print_message("%" PRIu64 " refusals\n", refusals);
    assert_true(refusals > 0 && refusals < (uint64_t)programs);
}

/* Plans a script, and expects the same results after passes, by the reference and the device. */
static void expect_passes(struct script *script, int way)
{
    script_plan(script);
    struct outcome expected = run(script, NULL), found;
    OK(plan_optimise(script->plan, PASSES_ALL, &error));
    found = run(script, NULL);
    expect_same(&expected, &found, PASSES_ALL, way, "reference");
    found = run(script, device);
    expect_same(&expected, &found, PASSES_ALL, way, "device");
    release(&expected);
}

/* Chains of any two operations on dense rows, on groups of k and on rows that vectors do not fill,
 * of any values: what is between wraps where the dtype does not hold it. */
static void chains_of_any_layout(void **state)
{
    (void)state;
    enum { LONG = 1040, MOST = 2 * LONG * 2, K_MOST = 13 };
    static const struct {
        int64_t shape[3], k;
        const char *view, *between;
    } layouts[] = {{{LONG, 2, 2}, 2, "[...]", "(1040,2,2)"},
                   {{LONG, 2, 2}, 2, "[:,1]", "(1040,2)"},
                   {{MOST / 16, 1, 16}, K_MOST, "[:,0,2:15]", "(260,13)"}};
    static const enum dtype dtypes[] = {DTYPE_INT32, DTYPE_INT64};
    static const char *const names[] = {"_modmul_tt", "_modsum_tt", "_mod_t", "_modneg_t"};
    struct random random = {seed};
    uint64_t chains = 0; /* mod of what it does not change is none */
    int64_t values[MOST];
    for (int way = 0; way < 2 * 3 * 16; way++) {
        struct script script = {0};
        enum dtype dtype = dtypes[way % 2];
        const int layout = way / 2 % 3, first = way / 6 % 4, second = way / 24;
        for (const char *name = "xyqo"; *name; name++) {
            for (int i = 0; i < MOST; i++)
                values[i] = *name == 'q'                 ? random_modulus(&random, dtype)
                            : random_once_in(&random, 2) ? random_value(&random, dtype)
                                                         : random_between(&random, 0, 96);
            script_upload(&script, (char[]){*name, '0', 0}, dtype, *name == 'q' ? 1 : 3,
                          *name == 'q' ? &layouts[layout].k : layouts[layout].shape, values);
            call(&script, (char[]){*name, 0}, "get_slice", "%c0 %s", *name,
                 *name == 'q' ? "[...]" : layouts[layout].view);
        }
        call(&script, "t", "empty", "%s :int%d", layouts[layout].between,
             8 * (int)dtype_size(dtype));
        for (int i = 0; i < 2; i++) {
            const int which = i ? second : first;
            const char *p = way % 3 ? "q" : "1099511627776";
            char name[16];
            snprintf(name, sizeof name, "%s%c", names[which], *p == 'q' ? 't' : 'c');
            call(&script, NULL, name, which < 2 ? "%s %s %s %s" : "%s %.0s%s %s", i ? "t" : "x",
                 i ? "o" : "y", p, i ? "o" : "t");
        }
        script_free(&script, "t");
        script_download(&script, "o0");
        expect_passes(&script, way);
        chains += script.plan->segments[0].pass_changes[PASS_COUNT - 1];
        script_release(&script);
    }
    assert_true(chains > 72);
}

enum { VIEWED_MOST = 4 * 2 * 48 * 16 }; /* elements */

/* Uploads a tensor NAME0, and makes NAME a view of it. One value in 1 + 9 * tame is any of the
 * dtype, the others are small. */
static void upload_view(struct script *script, char name, enum dtype dtype, uint32_t rank,
                        const int64_t *shape, const char *view, int tame, struct random *random)
{
    int64_t values[VIEWED_MOST];
    for (int i = 0; i < VIEWED_MOST; i++)
        values[i] = random_once_in(random, 1 + 9 * tame) ? random_value(random, dtype)
                                                         : random_between(random, 0, 96);
    script_upload(script, (char[]){name, '0', 0}, dtype, rank, shape, values);
    call(script, (char[]){name, 0}, "get_slice", "%c0 %s", name, view);
}

/* Sums of products of any values, the last ones of which begin with a sum. Rows of n are dense or
 * strided, moduli vary between or within them, and some are no multiple of eight. */
static void sums_of_any_layout(void **state)
{
    (void)state;
    static const struct {
        int64_t shape[4], moduli[4];
        const char *view, *moduli_view, *between;
    } layouts[] = {{{2, 3, 5, 64}, {1, 3, 1, 1}, "[...]", "[...]", "(2,3,5,64)"},
                   {{4, 2, 48, 16}, {4, 1, 1, 1}, "[:,1]", "[:,0]", "(4,48,16)"},
                   {{2, 2, 48, 7}, {1, 1, 1, 7}, "[...]", "[...]", "(2,2,48,7)"},
                   {{2, 48, 3, 7}, {1, 1, 3, 7}, "[...,0:5]", "[...,2:7]", "(2,48,3,5)"},
                   {{2, 3, 48, 16}, {1, 3, 1, 1}, "[...,::2]", "[...]", "(2,3,48,8)"},
                   {{3, 2, 3, 5}, {3, 2, 3, 5}, "[...]", "[...]", "(3,2,3,5)"},
                   {{3, 2, 3, 5}, {3, 1, 1, 1}, "[1,1,2,4]", "[1,0,0,0]", "()"}};
    static const enum dtype dtypes[] = {DTYPE_INT32, DTYPE_INT64};
    struct random random = {seed};
    uint64_t sums = 0;
    int64_t values[VIEWED_MOST];
    for (int way = 0; way < 6 * 14; way++) {
        struct script script = {0};
        const enum dtype dtype = dtypes[way % 2];
        const int layout = way / 2 % 7, tame = way / 14;
        const bool has_scalar = tame == 5;
        for (const char *name = "abcdefgho"; *name; name++)
            upload_view(&script, *name, dtype, 4, layouts[layout].shape, layouts[layout].view, tame,
                        &random);
        for (int i = 0; i < VIEWED_MOST; i++)
            values[i] = tame > 1 ? 97 + i : random_modulus(&random, dtype);
        script_upload(&script, "q0", dtype, 4, layouts[layout].moduli, values);
        call(&script, "q", "get_slice", "q0 %s", layouts[layout].moduli_view);
        const char *p = has_scalar ? "1099511627776" : "q";
        char operation[16], text[32];
        for (const char *at = "abcdefgh"; *at; at += 2) {
            snprintf(operation, sizeof operation, "_modmul_tt%c", *p == 'q' ? 't' : 'c');
            call(&script, "t", "empty", "%s :int%d", layouts[layout].between,
                 8 * (int)dtype_size(dtype));
            snprintf(text, sizeof text, "%c %c %s t", at[0], at[1], p);
            call(&script, NULL, operation, "%s", text);
            snprintf(operation, sizeof operation, "_modsum_tt%c", *p == 'q' ? 't' : 'c');
            call(&script, NULL, operation, at[0] < 'g' ? "t o %s o" : "o t %s o", p);
        }
        script_free(&script, "t");
        script_download(&script, "o0");
        expect_passes(&script, way);
        sums += script.plan->segments[0].pass_changes[PASS_COUNT - 2];
        script_release(&script);
    }
    assert_int_equal(sums, 6 * 84);
}

/* Products of two ciphertexts, each of two parts, of any values: one step if they are added one
 * after the other. */
static void products_of_parts(void **state)
{
    (void)state;
    static const struct {
        int64_t shape[3], moduli[2];
        const char *view, *empty;
    } layouts[] = {{{2, 6, 64}, {6, 1}, "[...]", "(6,64)"},
                   {{2, 48, 7}, {1, 7}, "[...]", "(48,7)"},
                   {{4, 48, 16}, {1, 16}, "[::2,:,:8]", "(48,8)"},
                   {{2, 1, 1}, {1, 1}, "[...]", "(1,1)"}};
    static const enum dtype dtypes[] = {DTYPE_INT32, DTYPE_INT64};
    struct random random = {seed};
    int64_t values[VIEWED_MOST];
    for (int run = 0; run < 2 * 4 * 3 * PART_WAYS; run++) {
        struct script script = {0};
        const int way = run / 24, layout = run / 2 % 4, tame = run / 8 % 3;
        const enum dtype dtype = dtypes[run % 2];
        char empty[32];
        for (const char *name = "xyzo"; *name; name++)
            upload_view(&script, *name, dtype, 3, layouts[layout].shape, layouts[layout].view, tame,
                        &random);
        for (int i = 0; i < VIEWED_MOST; i++)
            values[i] = tame ? 97 + i : random_modulus(&random, dtype);
        script_upload(&script, "q0", dtype, 2, layouts[layout].moduli, values);
        call(&script, "q", "get_slice", layout == 2 ? "q0 [:,:8]" : "q0 [...]");
        snprintf(empty, sizeof empty, "%s :int%d", layouts[layout].empty,
                 8 * (int)dtype_size(dtype));
        const bool in_place = run % 5 == 0; /* the sum is a factor */
        add_part_products(&script, NULL, (const char *const[]){"x", "y", "z", in_place ? "x" : "o"},
                          "q", empty, way);
        script_download(&script, in_place ? "x0" : "o0");
        expect_passes(&script, run);
        int kernels = 0;
        for (size_t i = 0; i < script.plan->step_count; i++) {
            const struct step *step = &script.plan->steps[i];
            kernels += step->kind > STEP_RELEASE;
            for (int j = 0; j < STEP_INPUTS && step->kind == STEP_MULTIPLY_ADD; j++)
                assert_true(!tensors_overlap(step->in[j], step->out) ||
                            tensors_same(step->in[j], step->out)); /* parts run at the same time */
        }
        if ((way & (ADDS_TWICE | SQUARES)) == ADDS_TWICE && !in_place)
            assert_int_equal(kernels, 1);
        script_release(&script);
    }
}

/* Transforms and factors of any sign, forward ones with an addend of any values: rows in order and
 * side by side, moduli of all sizes, rows that fit into local memory and longer ones. */
static void scaled_transforms(void **state)
{
    (void)state;
    enum { LONGEST = 1 << 14 };
    static const struct {
        enum dtype dtype;
        int bits, n;
    } cases[] = {{DTYPE_INT32, 30, 256}, {DTYPE_INT64, 61, 512},     {DTYPE_INT64, 63, 256},
                 {DTYPE_INT64, 40, 64},  {DTYPE_INT64, 61, LONGEST}, {DTYPE_INT32, 31, 1024}};
    struct random random = {seed};
    int64_t *values = malloc(3 * (size_t)K * LONGEST * sizeof *values);
    for (int way = 0; way < 8 * (int)(sizeof cases / sizeof *cases); way++) {
        struct script script = {0};
        const int n = cases[way / 8].n;
        const enum dtype dtype = cases[way / 8].dtype;
        const bool together = way % 2, permutes = way / 2 % 2, forward = way / 4 % 2;
        int64_t q[K];
        for (int i = 0; i < K; i++)
            q[i] = (int64_t)(UINT64_MAX >> (65 - cases[way / 8].bits)) - 2 * i -
                   random_between(&random, 0, 9);
        script_upload(&script, "q", dtype, 1, (int64_t[]){K}, q);
        for (int i = 0; i < 3 * K * n; i++)
            values[i] = random_between(&random, -5, INT32_MAX);
        script_upload(&script, "x", dtype, 4,
                      together ? (int64_t[]){3, n, 1, K} : (int64_t[]){3, 1, K, n}, values);
        script_upload(&script, "ipsi", dtype, 2, (int64_t[]){K, n}, values + n);
        script_upload(&script, "n_inv", dtype, 1, (int64_t[]){K}, values + 3);
        for (int i = 0; i < 3 * K; i++)
            values[i] = way % 3 == 0 ? -1 - i : random_value(&random, dtype);
        script_upload(&script, "f", dtype, 1, (int64_t[]){K}, values);
        for (int i = 0; i < n; i++)
            values[i] = permutes ? n - 1 - i : i;
        script_upload(&script, "perm", DTYPE_INT64, 1, (int64_t[]){n}, values);
        const int axis = together ? -3 : -1;
        for (int i = 0; i < K * n; i++)
            values[i] = random_once_in(&random, 2) ? random_value(&random, dtype) : q[0] - i % 3;
        script_upload(&script, "d", dtype, 2, (int64_t[]){n, K}, values);
        call(&script, "d", together ? "unsqueeze" : "moveaxis", together ? "d -2" : "d 0 1");
        call(&script, NULL, forward ? "ntt" : "intt",
             forward ? "x %d perm none q none none ipsi x 0 0"
                     : "x %d perm none q none none ipsi n_inv x 0",
             axis);
        call(&script, "f_view", "unsqueeze", "f %d", together ? 0 : 1);
        call(&script, "q_view", "unsqueeze", "q %d", together ? 0 : 1);
        if (forward)
            call(&script, NULL, "modsum", way % 3 ? "d x q_view x" : "x d q_view x");
        call(&script, NULL, "modmul", "x f_view q_view x");
        script_download(&script, "x");
        expect_passes(&script, way);
        assert_int_equal(script.plan->pass_changes, forward ? 2 : 1);
        script_release(&script);
    }
    free(values);
}

/* The first refusal is that of the products, whether or not they become a sum. */
static void first_refusals(void **state)
{
    (void)state;
    for (int between = 0; between < 2; between++) {
        struct script script = {0};
        struct random random = {1};
        declare(&script, &random);
        script_upload(&script, "bad", DTYPE_INT64, 1, (int64_t[]){K}, (int64_t[]){97, -7});
        call(&script, "t", "empty", "(%d,%d,%d,%d) :int64", ROWS, TERMS, N, K);
        call(&script, NULL, "_modmul_ttt", "a0 b0 bad t");
        if (between)
            call(&script, NULL, "modsum", "o0 o0 bad o2");
        call(&script, NULL, "axis_modsum", "t 1 bad o1");
        script_free(&script, "t");
        script_plan(&script);
        OK(plan_optimise(script.plan, PASSES_ALL, &error));
        assert_int_equal(script.plan->segments[0].pass_changes[0], between ? 0 : 1);
        for (int i = 0; i < 2; i++) {
            struct outcome outcome = run(&script, i ? device : NULL);
            assert_int_equal(outcome.error.status, HEALCL_REFUSED);
            assert_string_equal(outcome.error.message,
                                "entry 22 (_modmul_ttt): argument 'p': -7 at [1] is below 1");
            release(&outcome);
        }
        script_release(&script);
    }
}

/* ---------------------------------------------------------------- bundled transcripts */

static void verify(const char *path, const char *set, struct healcl_device *on)
{
    const struct healcl_plan_options options = {.passes = set};
    const struct healcl_run_options once = {.no_warm_up = true};
    struct healcl_transcript *transcript = NULL;
    struct healcl_report *report = NULL;
    OK(healcl_transcript_open(path, &options, &transcript, &error));
    OK(healcl_run(transcript, on, &once, &report, &error));
    if (report->verdict == HEALCL_DIFFERS || report->results_compared != report->results)
        fail_msg("%s with passes %s", path, set);
    healcl_report_free(report);
    healcl_transcript_close(transcript);
}

static void bundled_transcripts(void **state)
{
    (void)state;
    char sets[2 * PASS_COUNT + 2][96] = {"none", "all"};
    for (int i = 0; i < PASS_COUNT; i++) {
        snprintf(sets[2 + i], sizeof sets[0], "%s", passes[i].name);
        for (int j = 0; j < PASS_COUNT; j++) {
            char *left = sets[2 + PASS_COUNT + i];
            size_t length = strlen(left);
            if (j != i)
                snprintf(left + length, sizeof sets[0] - length, "%s%s", length ? "," : "",
                         passes[j].name);
        }
    }
    DIR *folder = opendir(TRANSCRIPTS);
    assert_non_null(folder);
    uint64_t number = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", TRANSCRIPTS, entry->d_name);
        if (!strstr(path, ".json"))
            continue;
        for (int i = 0; i < 2 * PASS_COUNT + 2; i++)
            if (share_takes("passes", number++, 4))
                verify(path, sets[i], i % 2 ? device : NULL);
    }
    closedir(folder);
    assert_true(number > 200);
}

/* ---------------------------------------------------------------- lists, and time */

static void lists(void **state)
{
    (void)state;
    uint32_t set;
    OK(passes_parse(NULL, &set, &error));
    assert_int_equal(set, PASSES_ALL);
    OK(passes_parse("none", &set, &error));
    assert_int_equal(set, 0);
    OK(passes_parse("stores,products", &set, &error));
    assert_int_equal(set, 1 << 0 | 1 << 4);
    static const char *const wrong[] = {"", ",", "store", "storess", "none,stores", "stores,"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(passes_parse(wrong[i], &set, &error), HEALCL_USAGE);
        healcl_error_clear(&error);
    }
    struct healcl_transcript *transcript = NULL;
    assert_int_equal(healcl_transcript_open_memory("[]", 2,
                                                   &(struct healcl_plan_options){.passes = "x"},
                                                   &transcript, &error),
                     HEALCL_USAGE);
    assert_string_equal(error.message, "there is no pass 'x'; the passes are: products bases "
                                       "batches zeros stores copies sums chains");
    healcl_error_clear(&error);
}

/* Segments of nothing, with no step in the whole plan. Sanitizers see what is done there. */
static void nothing_to_do(void **state)
{
    (void)state;
    struct script script = {0};
    script_segment_start(&script, "nothing");
    script_segment_end(&script);
    script_plan(&script);
    assert_int_equal(script.plan->step_count, 0);
    OK(plan_optimise(script.plan, PASSES_ALL, &error));
    assert_int_equal(script.plan->segment_count, 1);
    assert_int_equal(script.plan->pass_changes, 0);
    script_release(&script);
}

/* Processor seconds for the passes of so many repetitions of products, sums and copies. */
static double seconds_of(int repetitions, size_t *steps)
{
    struct script script = {0};
    struct random random = {1};
    declare(&script, &random);
    for (int i = 0; i < repetitions; i++) {
        call(&script, "t", "empty", "(%d,%d,%d,%d) :int64", ROWS, TERMS, N, K);
        call(&script, NULL, "modmul", "a0 b0 q t");
        call(&script, "s", "zeros", "(%d,%d,%d) :int64", ROWS, N, K);
        call(&script, NULL, "axis_modsum", "t 1 q s");
        call(&script, "o0", "contiguous", "s");
        script_free(&script, "t");
        script_free(&script, "s");
    }
    script_plan(&script);
    *steps = script.plan->step_count;
    clock_t begin = clock(); /* of the process: machines may be busy */
    OK(plan_optimise(script.plan, PASSES_ALL, &error));
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    assert_true(script.plan->step_count < *steps / 2);
    script_release(&script);
    return seconds;
}

/* The bar is 3 us for an entry; here ten times that for a step, for busy machines and sanitizers.
 */
static void linear_time(void **state)
{
    (void)state;
    for (int repetitions = 100; repetitions <= 40000; repetitions *= 20) {
        size_t steps;
        double seconds = seconds_of(repetitions, &steps);
        print_message("%zu steps: %.0f ns each\n", steps, seconds * 1e9 / (double)steps);
        assert_true(seconds < 30e-6 * (double)steps + 0.01);
    }
}

/* [SEED PROGRAMS] */
int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(random_programs),     cmocka_unit_test(first_refusals),
        cmocka_unit_test(bundled_transcripts), cmocka_unit_test(lists),
        cmocka_unit_test(linear_time),         cmocka_unit_test(chains_of_any_layout),
        cmocka_unit_test(scaled_transforms),   cmocka_unit_test(nothing_to_do),
        cmocka_unit_test(sums_of_any_layout),  cmocka_unit_test(products_of_parts),
    };
    return cmocka_run_group_tests(all, open_device, close_device);
}
