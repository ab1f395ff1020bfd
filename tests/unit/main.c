/*
 * The unit tests: unit_tests NAME... runs those of test_NAME.c, one after the other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper_share.h"

#define TEST(name) int name(void);
#include "unit_tests.h"
#undef TEST

static const struct {
    const char *name;
    int (*run)(void);
} tests[] = {
#define TEST(name) {#name, name},
#include "unit_tests.h"
#undef TEST
};

/* Runs one, and leaves the environment as it was. */
static int run(int (*test)(void))
{
    static const char *const names[] = {"HEALCL_AS", "HEALCL_TUNING", "HEALCL_VARIANT"};
    enum { NAMES = sizeof names / sizeof *names };
    char *values[NAMES];
    for (int i = 0; i < NAMES; i++)
        values[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
    const int failed = test();
    share_choose_programs(PROGRAMS_ANY);
    for (int i = 0; i < NAMES; i++) {
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
        free(values[i]);
    }
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        size_t number = 0;
        while (number < sizeof tests / sizeof *tests && strcmp(tests[number].name, argv[i]) != 0)
            number++;
        if (number == sizeof tests / sizeof *tests) {
            fprintf(stderr, "unit_tests: no %s\n", argv[i]);
            return 2;
        }
        failed += run(tests[number].run) != 0;
    }
    return failed ? 1 : 0;
}
