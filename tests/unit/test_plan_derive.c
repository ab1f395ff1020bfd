/* Derived transcripts: a change that changes nothing makes the same plan, also of a derived one;
 * limits hold for what a change writes. */
#include "plan/derive.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan/memory.h"
#include "plan/transcript.h"

static enum healcl_status write_segments(struct rewrite *rewrite, struct healcl_error *error)
{
    for (size_t s = 0; s < rewrite->from->segment_count; s++) {
        const struct segment *segment = &rewrite->from->segments[s];
        TRY(rewrite_segment(rewrite, segment, error));
        for (size_t i = 0; i < segment->step_count; i++)
            TRY(rewrite_same(rewrite, &rewrite->from->steps[segment->first_step + i], error));
    }
    return HEALCL_OK;
}

static enum healcl_status change_nothing(struct rewrite *rewrite, const void *how,
                                         struct healcl_error *error)
{
    assert_string_equal(how, "how");
    return write_segments(rewrite, error);
}

static void expect_same_tensor(const struct tensor *a, const struct tensor *b)
{
    assert_int_equal(!a, !b);
    if (!a)
        return;
    assert_int_equal(a->storage->dtype, b->storage->dtype);
    assert_int_equal(a->storage->elements, b->storage->elements);
    assert_memory_equal(&a->layout, &b->layout, sizeof a->layout);
}

static void expect_same_plan(const struct plan *a, const struct plan *b)
{
    assert_int_equal(a->step_count, b->step_count);
    assert_int_equal(a->uploads, b->uploads);
    assert_int_equal(a->results, b->results);
    assert_int_equal(a->expected, b->expected);
    assert_int_equal(a->bytes_up, b->bytes_up);
    assert_int_equal(a->bytes_down, b->bytes_down);
    assert_int_equal(a->pass_changes, b->pass_changes);
    assert_true(b->bytes_peak <= a->bytes_peak); /* storages begin where they are first used */
    for (size_t i = 0; i < a->step_count; i++) {
        const struct step *one = &a->steps[i], *other = &b->steps[i];
        assert_int_equal(one->kind, other->kind);
        assert_memory_equal(one->value, other->value, sizeof one->value);
        assert_int_equal(one->residues, other->residues);
        assert_int_equal(one->nonnegative, other->nonnegative);
        assert_int_equal(step_origin(one, NO_INPUT)->entry, step_origin(other, NO_INPUT)->entry);
        for (int j = 0; j < STEP_OPERANDS; j++)
            expect_same_tensor(step_operand(one, j), step_operand(other, j));
    }
}

/* Of a plan that stays as it is before passes any number may be made, and nothing is planned again.
 */
static void expect_same_of_plain(const char *path, const struct plan *wanted)
{
    struct healcl_transcript *plain = NULL, *children[2] = {NULL}, *grandchild = NULL;
    struct healcl_error error = {0};
    assert_int_equal(transcript_open_plain(path, NULL, &plain, &error), HEALCL_OK);
    assert_int_equal(plain->plan->pass_changes, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            transcript_derive(plain, change_nothing, "how", sizeof "how", &children[i], &error),
            HEALCL_OK);
    assert_int_equal(
        transcript_derive(children[0], change_nothing, "how", sizeof "how", &grandchild, &error),
        HEALCL_OK);
    if (wanted->uploads > 0)
        assert_ptr_equal(plain->input_steps[0]->origins, children[0]->input_steps[0]->origins);
    healcl_transcript_close(plain);
    healcl_transcript_close(children[0]);
    expect_same_plan(wanted, children[1]->plan);
    expect_same_plan(wanted, grandchild->plan);
    healcl_transcript_close(children[1]);
    healcl_transcript_close(grandchild);
}

static void expect_same(const char *path)
{
    struct healcl_transcript *parent = NULL, *child = NULL, *grandchild = NULL;
    struct healcl_error error = {0};
    if (healcl_transcript_open(path, NULL, &parent, &error) != HEALCL_OK)
        fail_msg("%s: %s", path, error.message);
    assert_int_equal(transcript_derive(parent, change_nothing, "how", sizeof "how", &child, &error),
                     HEALCL_OK);
    expect_same_plan(parent->plan, child->plan);
    assert_int_equal(
        transcript_derive(child, change_nothing, "how", sizeof "how", &grandchild, &error),
        HEALCL_OK);
    struct plan *of_parent = parent->plan;
    expect_same_plan(of_parent, grandchild->plan);
    expect_same_of_plain(path, of_parent);
    healcl_transcript_close(child);
    healcl_transcript_close(parent); /* both are still needed */
    size_t count;
    assert_true(healcl_transcript_inputs(grandchild, &count) || count == 0);
    healcl_transcript_close(grandchild);
}

static void nothing_changes(void **state)
{
    (void)state;
    DIR *folder = opendir(TRANSCRIPTS);
    size_t files = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[512];
        if (!strstr(entry->d_name, ".json"))
            continue;
        snprintf(path, sizeof path, TRANSCRIPTS "/%s", entry->d_name);
        expect_same(path);
        files++;
    }
    closedir(folder);
    assert_true(files > 20);
}

/* Twice the storage of what is filled. */
static enum healcl_status change_size(struct rewrite *rewrite, const void *how,
                                      struct healcl_error *error)
{
    struct storage *storage;
    (void)how;
    for (size_t i = 0; i < rewrite->from->step_count; i++)
        if (rewrite->from->steps[i].kind == STEP_FILL) {
            const struct storage *of = rewrite->from->steps[i].out->storage;
            TRY(rewrite_storage(rewrite, of, 2 * of->elements, &storage, error));
        }
    return write_segments(rewrite, error);
}

static void limits_hold(void **state)
{
    static const char text[] =
        "[{\"type\":\"DEVICE_OP\",\"op\":{\"name\":\"zeros\",\"args\":[{\"arg_type\":\"SHAPE\","
        "\"value\":[{\"arg_type\":\"INT\",\"value\":4}]},{\"arg_type\":\"TENSOR_TYPE\","
        "\"value\":\"int64\"}],\"out\":{\"arg_type\":\"DEVICE_TENSOR\",\"value\":{\"inf_name\":1}}}"
        "}"
        "]";
    struct healcl_limits limits = {.memory_bytes = 63};
    struct healcl_transcript *parent = NULL, *child = NULL;
    struct healcl_error error = {0};
    (void)state;
    assert_int_equal(healcl_transcript_open_memory(text, sizeof text - 1, &limits, &parent, &error),
                     HEALCL_OK);
    assert_int_equal(transcript_derive(parent, change_size, "", 0, &child, &error), HEALCL_REFUSED);
    assert_int_equal(error.cause, HEALCL_CAUSE_LIMIT);
    assert_string_equal(error.message,
                        "entry 0 (zeros): 64 bytes beside 0 in use are above the limit of 63");
    healcl_transcript_close(parent);
    limits.memory_bytes = 64;
    assert_int_equal(healcl_transcript_open_memory(text, sizeof text - 1, &limits, &parent, &error),
                     HEALCL_OK);
    assert_int_equal(transcript_derive(parent, change_size, "", 0, &child, &error), HEALCL_OK);
    assert_int_equal(child->plan->bytes_peak, 64);
    healcl_transcript_close(child);
    healcl_transcript_close(parent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_changes),
        cmocka_unit_test(limits_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
