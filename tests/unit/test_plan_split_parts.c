/*
 * The parts of a plan, step by step, over random scripts: what each rank has of storages, views,
 * inputs and results; that sums are exchanged before something wants them, and nowhere else; that
 * operations are counted where their steps are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "helper_random_script.h"
#include "plan/memory.h"
#include "plan/split.h"

enum { RANKS_MOST = 4, SCRIPTS = 150 };

static struct healcl_error error;
static size_t splits, refusals, exchanges, goings_on, fills; /* so far */

/* Parts of a plan. A step of a part is one of the whole's, but for fills of sums. */
struct parts {
    struct plan *whole;
    struct plan *part[RANKS_MOST];
    const struct step **steps[RANKS_MOST]; /* by step of the whole */
    uint32_t ranks;
};

/* ---------------------------------------------------------------- pairs of steps */

static bool is_added(const struct step *part, const struct step *whole)
{
    return part->kind == STEP_FILL && whole->kind != STEP_FILL;
}

static void find_steps(struct parts *parts, uint32_t rank)
{
    const struct plan *whole = parts->whole, *part = parts->part[rank];
    size_t at = 0;
    parts->steps[rank] = calloc(whole->step_count + 1, sizeof(struct step *));
    assert_non_null(parts->steps[rank]);
    for (size_t i = 0; i < whole->step_count; i++, at++) {
        at += is_added(&part->steps[at], &whole->steps[i]);
        parts->steps[rank][i] = &part->steps[at];
    }
    assert_int_equal(at, part->step_count);
}

static bool make_parts(struct parts *parts, struct plan *whole, size_t input, uint32_t axis,
                       uint32_t ranks)
{
    const struct healcl_limits limits = {.passes = NULL};
    *parts = (struct parts){.whole = whole, .ranks = ranks};
    for (uint32_t r = 0; r < ranks; r++) {
        const struct healcl_split split = {input, axis, r, ranks};
        if (plan_rewrite(whole, true, &limits, plan_split, &split, &parts->part[r], &error) !=
            HEALCL_OK) {
            assert_int_equal(r, 0); /* all or none */
            assert_memory_equal(error.message, "entry ", strlen("entry "));
            healcl_error_clear(&error);
            return false;
        }
        find_steps(parts, r);
    }
    return true;
}

static void free_parts(struct parts *parts)
{
    for (uint32_t r = 0; r < parts->ranks; r++) {
        plan_free(parts->part[r]);
        free(parts->steps[r]);
    }
}

/* ---------------------------------------------------------------- sizes */

/* What ranks have of an axis: all of it, or none has less than a rank behind it, nor more than one
 * index above it. Returns whether it is split. */
static bool expect_sizes(const int64_t *sizes, uint32_t ranks, int64_t whole)
{
    const int64_t each = sizes[0] - sizes[ranks - 1], count = each > 0 ? whole / each : 0;
    if (sizes[0] == whole && sizes[ranks - 1] == whole && ranks > 1)
        return false;
    int64_t sum = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        assert_true(each >= 0 && sizes[r] > 0);
        if (each > 0)
            assert_int_equal(sizes[r], each * (count / ranks + (r < count % ranks)));
        sum += sizes[r];
    }
    assert_int_equal(sum, whole);
    return true;
}

/* A view is cut along one axis at most, and lies in what the rank has. */
static void expect_view(const struct parts *parts, size_t i, int operand)
{
    const struct tensor *whole = step_operand(&parts->whole->steps[i], operand);
    int64_t sizes[RANKS_MOST];
    uint32_t cut = 0;
    for (uint32_t axis = 0; axis < whole->layout.rank; axis++) {
        for (uint32_t r = 0; r < parts->ranks; r++)
            sizes[r] = step_operand(parts->steps[r][i], operand)->layout.shape[axis];
        cut += expect_sizes(sizes, parts->ranks, whole->layout.shape[axis]);
    }
    assert_true(cut <= 1 || parts->ranks == 1);
    for (uint32_t r = 0; r < parts->ranks; r++) {
        const struct tensor *part = step_operand(parts->steps[r][i], operand);
        assert_true(layout_last(&part->layout) < part->storage->elements);
        sizes[r] = part->storage->elements;
    }
    if (!whole->storage->scalars)
        (void)expect_sizes(sizes, parts->ranks, whole->storage->elements);
}

static void expect_steps(const struct parts *parts)
{
    for (size_t i = 0; i < parts->whole->step_count; i++) {
        const struct step *whole = &parts->whole->steps[i];
        for (uint32_t r = 0; r < parts->ranks; r++) {
            const struct step *part = parts->steps[r][i];
            assert_int_equal(part->kind, whole->kind);
            assert_int_equal(!part->payload, !whole->payload);
            if (part->payload)
                assert_true(layout_same_shape(
                    &part->payload->layout, part->out ? &part->out->layout : &part->in[0]->layout));
            for (int j = 0; j < STEP_OPERANDS; j++)
                assert_int_equal(!step_operand(part, j), !step_operand(whole, j));
        }
        for (int j = 0; j < STEP_OPERANDS; j++)
            if (step_operand(whole, j) && whole->kind != STEP_RELEASE)
                expect_view(parts, i, j);
    }
}

/* Of each input or result: where what a rank has begins and ends, and that its transfer has it. */
static void expect_transfers(const struct parts *parts, enum step_kind kind)
{
    size_t number = 0;
    for (size_t i = 0; i < parts->whole->step_count; i++) {
        const struct step *whole = &parts->whole->steps[i];
        const struct tensor *tensor = whole->out ? whole->out : whole->in[0];
        int64_t sizes[RANKS_MOST], start = 0;
        if (whole->kind != kind)
            continue;
        for (uint32_t r = 0; r < parts->ranks; r++) {
            const struct plan *plan = parts->part[r];
            const struct payload_part *part =
                &(kind == STEP_UPLOAD ? plan->input_parts : plan->result_parts)[number];
            const struct step *step = parts->steps[r][i];
            const struct layout *layout = &(step->out ? step->out : step->in[0])->layout;
            if (part->period == 0) {
                assert_true(layout_same_shape(layout, &tensor->layout));
                continue;
            }
            assert_int_equal(part->start, start);
            assert_int_equal(layout->shape[part->axis] * part->period,
                             tensor->layout.shape[part->axis] * part->size);
            start += sizes[r] = part->size;
            if (r + 1 == parts->ranks)
                assert_true(expect_sizes(sizes, parts->ranks, part->period));
        }
        number++;
    }
}

/* ---------------------------------------------------------------- sums */

/* Whether a step makes a summand: it has less of what it sums, and all of the sum. */
static bool makes_summand(const struct step *part, const struct step *whole)
{
    return (whole->kind == STEP_AXIS_MODSUM || whole->kind == STEP_MODMUL_AXIS_SUM) &&
           layout_same_shape(&part->out->layout, &whole->out->layout) &&
           !layout_same_shape(&part->in[0]->layout, &whole->in[0]->layout);
}

static bool meets(const struct tensor *a, const struct tensor *b)
{
    return a && a->storage == b->storage && layouts_may_overlap(&a->layout, &b->layout);
}

static bool is_sum_of(const struct step *step, const struct exchange *exchange)
{
    return step->out && step->out->storage == exchange->sum->storage &&
           layout_same_elements(&step->out->layout, &exchange->sum->layout);
}

/* Whether a step wants the sum to be whole, or changes what it is reduced by. */
static bool wants(const struct step *step, const struct exchange *exchange)
{
    const bool ends = step->kind == STEP_RELEASE;
    for (int j = 0; j < STEP_OPERANDS; j++)
        if (ends ? j == 0 && step->in[0]->storage == exchange->sum->storage
                 : meets(step_operand(step, j), exchange->sum))
            return true;
    return ends ? step->in[0]->storage == exchange->moduli->storage
                : meets(step->out, exchange->moduli);
}

/* The first summands are written, or added to 0 but of rank 0; more are added; nothing else. */
static void expect_exchange(const struct parts *parts, uint32_t rank, size_t first, size_t end,
                            const struct exchange *exchange)
{
    size_t summands = 0;
    assert_true(layout_same_shape(&exchange->sum->layout, &exchange->moduli->layout));
    for (size_t i = first; i < end; i++) {
        const struct step *part = parts->steps[rank][i], *whole = &parts->whole->steps[i];
        if (!makes_summand(part, whole) || !is_sum_of(part, exchange)) {
            assert_true(summands == 0 || !wants(part, exchange));
            continue;
        }
        const bool is_filled = i > 0 && parts->steps[rank][i - 1] != &part[-1] &&
                               is_sum_of(&part[-1], exchange) && part[-1].value[0] == 0;
        assert_true(summands == 0 || step_adds(whole));
        assert_int_equal(is_filled && summands == 0, summands == 0 && step_adds(whole) && rank > 0);
        summands++;
    }
    assert_true(summands > 0);
}

static size_t added_fills(const struct parts *parts, uint32_t rank)
{
    return parts->part[rank]->step_count - parts->whole->step_count;
}

/* A part's segment of steps [first, end) of the whole. */
static void expect_exchanges(const struct parts *parts, uint32_t rank, size_t first, size_t end,
                             const struct segment *segment)
{
    for (size_t i = 0; i < segment->exchange_count; i++) {
        expect_exchange(parts, rank, first, end, &segment->exchanges[i]);
        for (size_t j = 0; j < i; j++)
            assert_false(segment->exchanges[i].sum->storage == segment->exchanges[j].sum->storage &&
                         layout_same_elements(&segment->exchanges[i].sum->layout,
                                              &segment->exchanges[j].sum->layout));
    }
    for (size_t i = first; i < end; i++) {
        const struct step *part = parts->steps[rank][i];
        size_t found = 0;
        for (size_t j = 0; j < segment->exchange_count; j++)
            found += is_sum_of(part, &segment->exchanges[j]);
        if (makes_summand(part, &parts->whole->steps[i]))
            assert_int_equal(found, 1);
    }
    exchanges += segment->exchange_count;
}

/* Whether the step that a segment goes on with had to wait for what the one before ends with: it
 * wants a sum, other than to add to it. */
static bool had_to_wait(const struct step *part, const struct step *whole,
                        const struct segment *before)
{
    for (size_t i = 0; i < before->exchange_count; i++)
        if (wants(part, &before->exchanges[i]) &&
            !(makes_summand(part, whole) && step_adds(whole) &&
              is_sum_of(part, &before->exchanges[i])))
            return true;
    return false;
}

/* ---------------------------------------------------------------- segments */

/* Operations of which steps [first, end) have the first step, by number; 0 of those in front. */
static void expect_counts(const struct plan *whole, size_t front, size_t first, size_t end,
                          const struct segment *segment)
{
    for (size_t number = 0; number < operation_count(whole->table); number++) {
        uint64_t count = 0;
        for (size_t i = first; i < end; i++) {
            const struct origin *origin = step_origin(&whole->steps[i], NO_INPUT);
            const struct origin *before =
                i > front ? step_origin(&whole->steps[i - 1], NO_INPUT) : NULL;
            count += origin->form && (!before || before->entry != origin->entry) &&
                     origin_operation(origin)->number == number;
        }
        assert_int_equal(segment->counts[number], count);
    }
}

/* What all segments of one of the whole's have together, and those behind an exchange alone. */
static void expect_segment(const struct parts *parts, uint32_t rank, size_t s, size_t *of_part)
{
    const struct plan *whole = parts->whole, *part = parts->part[rank];
    const struct segment *from = &whole->segments[s], *front = &part->segments[*of_part];
    const size_t last = from->first_step + from->step_count;
    const size_t size = operation_count(whole->table);
    uint64_t counted = 0, frees = 0, *counts = calloc(size, sizeof *counts);
    assert_non_null(counts);
    size_t first = from->first_step, end;
    do {
        const struct segment *segment = &part->segments[(*of_part)++];
        const struct step *behind = part->steps + segment->first_step + segment->step_count;
        for (end = first; end < last && parts->steps[rank][end] < behind;)
            end++;
        assert_string_equal(segment->name, from->name);
        expect_exchanges(parts, rank, first, end, segment);
        if (segment > front) {
            assert_true(had_to_wait(parts->steps[rank][first], &whole->steps[first], segment - 1));
            expect_counts(whole, from->first_step, first, end, segment);
            goings_on++;
        }
        for (size_t number = 0; number < size; number++)
            counts[number] += segment->counts[number];
        counted += segment->operations;
        frees += segment->frees;
        first = end;
    } while (first < last);
    assert_memory_equal(counts, from->counts, size * sizeof *counts);
    assert_int_equal(counted, from->operations);
    assert_int_equal(frees, from->frees);
    free(counts);
}

static void expect_segments(const struct parts *parts, uint32_t rank)
{
    size_t of_part = 0;
    for (size_t s = 0; s < parts->whole->segment_count; s++)
        expect_segment(parts, rank, s, &of_part);
    assert_int_equal(of_part, parts->part[rank]->segment_count);
}

/* ---------------------------------------------------------------- all */

static void expect_parts(const struct parts *parts)
{
    expect_steps(parts);
    expect_transfers(parts, STEP_UPLOAD);
    expect_transfers(parts, STEP_DOWNLOAD);
    for (uint32_t r = 0; r < parts->ranks; r++)
        expect_segments(parts, r);
    fills += added_fills(parts, parts->ranks - 1);
}

static void random_scripts_have_parts(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SCRIPTS; seed++) {
        struct script script = {0};
        script_random(&script, seed);
        script_plan(&script);
        script_spoil(script.plan);
        size_t input = 0;
        for (size_t i = 0; i < script.plan->step_count; i++) {
            const struct step *step = &script.plan->steps[i];
            if (step->kind != STEP_UPLOAD)
                continue;
            for (uint32_t axis = 0; axis < step->out->layout.rank; axis++) {
                const uint32_t ranks =
                    seed < SCRIPTS_CHOSEN ? 2 : 1 + (uint32_t)(seed + i + axis) % RANKS_MOST;
                struct parts parts;
                const bool is_split = make_parts(&parts, script.plan, input, axis, ranks);
                if (is_split)
                    expect_parts(&parts);
                free_parts(&parts);
                *(is_split ? &splits : &refusals) += 1;
            }
            input++;
        }
        script_release(&script);
    }
    printf("%zu splits, %zu refused, %zu exchanges, %zu segments behind them, %zu fills\n", splits,
           refusals, exchanges, goings_on, fills);
    assert_true(splits > 100 && refusals > 100 && exchanges > 100 && goings_on > 30 && fills > 30);
}

/* ---------------------------------------------------------------- exchanges */

/* The rank that a place of a block of so many elements belongs to. */
static uint32_t owner_of(uint64_t place, uint64_t block, uint32_t ranks)
{
    uint32_t owner = 0;
    while (place >= exchange_piece(block, owner + 1, ranks))
        owner++;
    return owner;
}

/* Others' elements go to them, and one's own, once they are sums, to all others. */
static uint64_t expected_sent(uint64_t elements, uint32_t rank, uint32_t ranks)
{
    uint64_t sent = 0;
    for (uint64_t i = 0; i < elements; i++) {
        const uint64_t place = i % EXCHANGE_BLOCK, left = elements - (i - place);
        const uint64_t block = left < EXCHANGE_BLOCK ? left : EXCHANGE_BLOCK;
        sent += owner_of(place, block, ranks) == rank ? ranks - 1 : 1;
    }
    return sent;
}

static void pieces_are_sent(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 12, EXCHANGE_BLOCK, EXCHANGE_BLOCK + 5};
    struct storage storages[] = {{.dtype = DTYPE_INT64}, {.dtype = DTYPE_INT32}};
    (void)state;
    for (uint32_t ranks = 1; ranks <= RANKS_MOST; ranks++)
        for (size_t i = 0; i + 1 < sizeof sizes / sizeof *sizes; i++) {
            const struct tensor sums[] = {{&storages[0], layout_of_shape(1, &sizes[i])},
                                          {&storages[1], layout_of_shape(1, &sizes[i + 1])}};
            const struct exchange both[] = {{&sums[0], &sums[0]}, {&sums[1], &sums[1]}};
            struct segment segments[] = {{.exchanges = both, .exchange_count = 2},
                                         {.exchange_count = 0},
                                         {.exchanges = both, .exchange_count = 1}};
            const struct plan plan = {.segments = segments, .segment_count = 3};
            for (uint32_t rank = 0; rank < ranks; rank++)
                assert_int_equal(exchange_bytes_sent(&plan, rank, ranks),
                                 2 * 8 * expected_sent((uint64_t)sizes[i], rank, ranks) +
                                     4 * expected_sent((uint64_t)sizes[i + 1], rank, ranks));
        }
}

/* ---------------------------------------------------------------- of derived ones */

/* Of a batch of requests results are expected one by one, which no part can be. */
static void batches_that_expect_results_are_refused(void **state)
{
    const struct layout layout = layout_of_shape(1, (int64_t[]){4});
    const int64_t values[] = {1, 2, 3, 4};
    (void)state;
    for (int64_t batch = 1; batch <= 2; batch++)
        for (int expects = 0; expects <= 1; expects++) {
            const struct healcl_split split = {.input = 0, .axis = 1, .rank = 0, .ranks = 2};
            const struct healcl_split other = {.input = 1, .axis = 0, .rank = 1, .ranks = 2};
            struct healcl_transcript *one = NULL, *wide = NULL, *part = NULL;
            struct script script = {0};
            script_lines(&script, "a (4); b (4)");
            writer_download(&script.writer, "a", DTYPE_INT64, &layout, expects ? values : NULL);
            script_finish(&script);
            assert_int_equal(healcl_transcript_open_memory(
                                 script.writer.bytes, script.writer.length, NULL, &one, &error),
                             HEALCL_OK);
            assert_int_equal(
                healcl_transcript_widen(one, (const size_t[]){0}, 1, batch, &wide, &error),
                HEALCL_OK);
            assert_int_equal(healcl_transcript_split(wide, &split, &part, &error),
                             expects ? HEALCL_USAGE : HEALCL_OK);
            if (expects)
                assert_string_equal(error.message,
                                    "a widened transcript that expects results cannot be split");
            healcl_error_clear(&error);
            healcl_transcript_close(part);
            part = NULL;
            /* Where the result is whole it may be. */
            assert_int_equal(healcl_transcript_split(wide, &other, &part, &error), HEALCL_OK);
            healcl_transcript_close(part);
            healcl_transcript_close(wide);
            healcl_transcript_close(one);
            script_release(&script);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_scripts_have_parts),
        cmocka_unit_test(pieces_are_sent),
        cmocka_unit_test(batches_that_expect_results_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
