/* Files of a temporary folder, for tests of what is read from one. Include it after cmocka. */
#ifndef HEALCL_TESTS_HELPER_FOLDER_H
#define HEALCL_TESTS_HELPER_FOLDER_H

#include <stdio.h>

static inline void write_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

#endif
