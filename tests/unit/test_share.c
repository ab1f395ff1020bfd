/* What the tests' helpers choose for a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "helper_share.h"

static const char name[] = "POCL_EXTRA_BUILD_FLAGS";

static void kernels_are_optimised_or_not(void **state)
{
    (void)state;
    unsetenv(name);
    share_compile_fast(true);
    assert_string_equal(getenv(name), "-cl-opt-disable");
    share_compile_fast(false);
    assert_null(getenv(name));
}

/* As for kernels that check ranges (tests/CMakeLists.txt). */
static void other_flags_stay(void **state)
{
    static const char flags[] = "-cl-opt-disable -DCHECK_RANGES";
    (void)state;
    setenv(name, flags, 1);
    share_compile_fast(true);
    assert_string_equal(getenv(name), flags);
    share_compile_fast(false);
    assert_string_equal(getenv(name), flags);
}

int main(void)
{
    unsetenv("HEALCL_TEST_ALL");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_optimised_or_not),
        cmocka_unit_test(other_flags_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
