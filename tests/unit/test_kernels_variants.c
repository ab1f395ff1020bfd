/* The tables of variants: whole, in agreement with the tuning's families, and without side effects.
 */
#include "helper_one_device.h"

#include <string.h>

#include "helper_script.h"
#include "kernels/launcher.h"
#include "kernels/variant.h"

#define PROGRAM(variable, name) extern const char healcl_cl_##variable[];
#include "opencl/programs.def"
#undef PROGRAM

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    while ((text = strstr(text, part)) != NULL) {
        count++;
        text += strlen(part);
    }
    return count;
}

/* Each kernel with a space copies it where devices need that: with COPY_SPACE, which few tests of
 * kernels have. */
static void kernels_take_spaces(void **state)
{
    (void)state;
    static const char *const texts[] = {
#define PROGRAM(variable, name) healcl_cl_##variable,
#include "opencl/programs.def"
#undef PROGRAM
    };
    size_t kernels = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const size_t spaces = count_of(texts[i], "(SPACE(space)");
        assert_int_equal(count_of(texts[i], "TAKE_SPACE(space);"), spaces);
        kernels += spaces;
    }
    assert_true(kernels > 30);
}

/* The last variant does everything, and no other one is unconditional; names differ. */
static void tables_are_whole(void **state)
{
    (void)state;
    const struct family *family;
    size_t place = 0;
    for (; (family = family_at(place)); place++) {
        assert_true(family->count > 0);
        for (size_t i = 0; i < family->count; i++) {
            const struct variant *variant = &family->variants[i];
            bool is_last = i + 1 == family->count;
            assert_non_null(variant->choose);
            assert_non_null(variant->plan);
            if (is_last)
                assert_int_equal(variant->style, STYLE_GENERAL);
            for (size_t j = 0; j < i; j++)
                assert_string_not_equal(family->variants[j].name, variant->name);
        }
    }
    assert_true(place > 5);
}

static void shapes_are_those_of_the_tuning(void **state)
{
    (void)state;
    for (int family = 0; family < FAMILY_COUNT; family++)
        for (int shape = 0; shape < STYLE_COUNT; shape++) {
            bool any;
            (void)style_tunables((enum kernel_family)family, (enum kernel_style)shape, &any);
            assert_int_equal(
                any, kernel_family_has((enum kernel_family)family, (enum kernel_style)shape));
        }
}

/* Asking allocates nothing and launches nothing, and the answer is what then runs. */
static void asking_has_no_effect(void **state)
{
    (void)state;
    struct script script = {0};
    const int64_t values[64] = {1, 2, 3}, modulus = 97;
    const int64_t square[] = {8, 8}, one[] = {1};
    script_upload(&script, "a", DTYPE_INT64, 2, square, values);
    script_upload(&script, "p", DTYPE_INT64, 1, one, &modulus);
    script_call(&script, "a", "_modmul_ttt", "a a p a");
    script_download(&script, "a");
    script_plan(&script);
    uint64_t bytes = device->bytes_live, launches = device->programs->first_launches, asked = 0;
    for (size_t i = 0; i < script.plan->step_count; i++) {
        const struct step *step = &script.plan->steps[i];
        const struct family *family = family_of(step->kind);
        for (size_t j = 0; family && j < family->count; j++) {
            const char *obstacle = variant_obstacle(family, &family->variants[j], step, device);
            if (&family->variants[j] == variant_for(step, device))
                assert_null(obstacle);
            else if (&family->variants[j] < variant_for(step, device))
                assert_non_null(obstacle);
            asked++;
        }
    }
    assert_true(asked > 0);
    assert_int_equal(device->bytes_live, bytes);
    assert_int_equal(device->programs->first_launches, launches);
    script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_whole),
        cmocka_unit_test(shapes_are_those_of_the_tuning),
        cmocka_unit_test(asking_has_no_effect),
        cmocka_unit_test(kernels_take_spaces),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
