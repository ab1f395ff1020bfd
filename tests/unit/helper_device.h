/* Declarations that the tests of the device layer share. */
#ifndef HEALCL_TESTS_HELPER_DEVICE_H
#define HEALCL_TESTS_HELPER_DEVICE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "helper_opencl.h"
#include "opencl/opening.h"

static struct healcl_error error;

/* Prints what went wrong where a call does not succeed. */
#define OK(expression)                                                                \
    do {                                                                              \
        enum healcl_status ok_ = (expression);                                        \
        if (ok_ != HEALCL_OK)                                                         \
            print_error("%s\n%s\n", error.message, error.detail ? error.detail : ""); \
        assert_int_equal(ok_, HEALCL_OK);                                             \
    } while (0)

/* Opens the first device of these functions as a run does, with the self-test unless it is cached.
 */
static inline enum healcl_status helper_open_tested(const struct opencl *cl,
                                                    struct healcl_device **device,
                                                    struct healcl_error *failure)
{
    return device_open_for_run(cl, &(struct healcl_device_options){.selector = NULL}, NULL, device,
                               failure);
}

/* No variable of the environment changes a test, no binary is cached, no handle is open. */
static inline int device_set_up(void **state)
{
    (void)state;
    unsetenv("HEALCL_DEVICE");
    unsetenv("HEALCL_AS");
    unsetenv("HEALCL_TUNING");
    setenv("HEALCL_CACHE_DIR", "", 1);
    helper_reset();
    return 0;
}

static inline int device_tear_down(void **state)
{
    (void)state;
    healcl_error_clear(&error);
    return helper_balanced() ? 0 : -1;
}

/* Gives a handle, and those that are opened beside it, another program. It takes precedence over
 * earlier ones of its name. */
static inline void give_program(struct healcl_device *device, const char *name, const char *text)
{
    enum { HANDLES_MAX = 64, PROGRAMS_MAX = 3 };
    static struct program_source programs[HANDLES_MAX][PROGRAMS_MAX + 1];
    static size_t handle;
    const struct program_source *earlier = device->programs->added;
    struct program_source *added = programs[handle++ % HANDLES_MAX];
    size_t count = 0;
    added[count++] = (struct program_source){name, text};
    for (; earlier && earlier->name && count < PROGRAMS_MAX; earlier++)
        added[count++] = *earlier;
    added[count].name = NULL;
    device->programs->added = added;
}

#define DEVICE_TEST(function) \
    cmocka_unit_test_setup_teardown(function, device_set_up, device_tear_down)

#endif
