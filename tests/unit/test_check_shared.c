/* What failures of a check have in common. */
#include <stdio.h>
#include <string.h>

#include "check/shared.h"
#include "helper_device.h"

static struct shared_facts shared;

/* A wrong call of modmul with these moduli, in a tensor or, of one, as a scalar. */
static void add(int64_t n, enum dtype dtype, int64_t count, const int64_t *moduli)
{
    const bool is_scalar = count == 1;
    struct problem problem = {.form = NULL};
    struct problem_data data = {.result = NULL};
    for (size_t i = 0; !problem.form; i++)
        if (strcmp(forms[i].name, is_scalar ? "modmul_ttc" : "modmul_ttt") == 0)
            problem.form = &forms[i];
    assert_string_equal(problem.form->parameters[2].name, "p");
    problem.tensors[2].present = !is_scalar;
    problem.tensors[2].dtype = DTYPE_INT64;
    problem.tensors[2].shape = layout_of_shape(1, &count);
    data.packed[2] = (void *)moduli;
    snprintf(problem.text[2], sizeof problem.text[2], "%lld", (long long)moduli[0]);
    shared_add(&shared, n, dtype, &problem, &data);
}

static void finds_the_modulus(void **state)
{
    (void)state;
    static const int64_t first[] = {97, 17, 257, 17}, second[] = {257, 13, 17}, third[] = {17};
    add(8, DTYPE_INT64, 4, first);
    assert_int_equal(shared.modulus_count, 3);
    add(8, DTYPE_INT64, 3, second);
    assert_int_equal(shared.modulus_count, 2);
    assert_true(shared.same_n && shared.same_dtype && shared.n == 8);
    add(16, DTYPE_INT64, 1, third);
    assert_int_equal(shared.modulus_count, 1);
    assert_true(shared.moduli[0] == 17);
    assert_true(!shared.same_n && shared.same_dtype && shared.dtype == DTYPE_INT64);
    assert_int_equal(shared.count, 3);
    add(16, DTYPE_INT32, 1, first);
    assert_true(shared.modulus_count == 0 && !shared.same_dtype);
    shared_release(&shared);
    assert_int_equal(shared.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_the_modulus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
