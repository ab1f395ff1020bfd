/* JSON that is read as a tree: what is too much is refused before cJSON sees it. */
#include "test_transcript_common.h"

#include "core/json_tree.h"

/* Texts in memory of their own with their 0, so that a sanitizer sees reads beyond it. */
static enum healcl_status read_tree(const char *text, size_t most, cJSON **tree, size_t *stop,
                                    struct healcl_error *error)
{
    const size_t bytes = strlen(text);
    char *copy = exact_copy(text, bytes + 1);
    enum healcl_status status = json_tree_read(copy, bytes, most, tree, stop, error);
    free(copy);
    return status;
}

static void takes(const char *text, size_t most)
{
    struct healcl_error error = {.detail = NULL};
    cJSON *tree;
    expect_ok(read_tree(text, most, &tree, NULL, &error), &error);
    assert_non_null(tree);
    cJSON_Delete(tree);
}

static void refuses(const char *text, size_t most, const char *part)
{
    struct healcl_error error = {.detail = NULL};
    cJSON *tree;
    expect_refusal(read_tree(text, most, &tree, NULL, &error), &error, part);
    assert_null(tree);
}

/* It takes exactly as many values and names as it has. */
static void has(const char *text, size_t count)
{
    char part[64];
    put(part, sizeof part, "more than %zu values and names", count - 1);
    takes(text, count);
    refuses(text, count - 1, part);
}

static void test_values_are_counted(void **state)
{
    (void)state;
    has("[1]", 2);
    has("[1, 2, [3, 4]]", 6);
    has("{\"a\": 1, \"b\": {\"c\": null}}", 7);
    has("[\",[{:\", \"\\\",,,\", \"\\\\\", 1]", 5);
}

static void test_depth_is_counted(void **state)
{
    (void)state;
    char text[2 * JSON_DEPTH_MAX + 8];
    for (int depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = 0;
        if (depth == JSON_DEPTH_MAX)
            takes(text, SIZE_MAX);
        else
            refuses(text, SIZE_MAX, "nests deeper than 128");
    }
    takes("[[], {}, [[]], {\"a\": []}]", SIZE_MAX);
}

static void is_none(const char *text, size_t bytes)
{
    struct healcl_error error = {.detail = NULL};
    cJSON *tree;
    size_t stop = SIZE_MAX;
    char *copy = exact_copy(text, bytes + 1);
    expect_ok(json_tree_read(copy, bytes, SIZE_MAX, &tree, &stop, &error), &error);
    free(copy);
    assert_null(tree);
    assert_true(stop <= bytes);
}

static void test_what_is_no_json(void **state)
{
    (void)state;
    is_none("", 0);
    is_none("[1 2]", 5);
    is_none("[1] x", 5);
    is_none("]]]]", 4);
    is_none("[\"a", 3);
    is_none("[\"\\", 3);
    is_none("[1]\0 ", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_counted),
        cmocka_unit_test(test_depth_is_counted),
        cmocka_unit_test(test_what_is_no_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
