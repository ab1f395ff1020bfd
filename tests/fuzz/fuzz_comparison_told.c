/* Fuzzes all that is told of a comparison: as many formats as there are, of what was saved and may
 * hold anything. What is written of it as JSON is a comparison again. */
#define _GNU_SOURCE
#include "comparison.h"

static void print(struct comparison *comparison)
{
    char *text = NULL;
    size_t size = 0, added;
    struct healcl_error error = {.detail = NULL};
    struct comparison again;
    FILE *stream = open_memstream(&text, &size);
    EXPECT(stream && compare_print_csv(comparison, stream) == HEALCL_OK);
    EXPECT(compare_print_markdown(comparison, stream) == HEALCL_OK);
    EXPECT(compare_print_junit(comparison, stream) == HEALCL_OK);
    EXPECT(compare_print_html(comparison, stream) == HEALCL_OK);
    fclose(stream);
    free(text);
    stream = open_memstream(&text, &size);
    EXPECT(stream && compare_print_json(comparison, stream) == HEALCL_OK);
    fclose(stream);
    begin(&again);
    enum healcl_status status = compare_read_baseline(&again, file_of(text, size), &added, &error);
    EXPECT(status == HEALCL_OK);
    comparison_release(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct comparison comparison;
    struct healcl_error error = {.detail = NULL};
    size_t added = 0;
    char *text = text_of(data, size);
    begin(&comparison);
    expect_read(compare_read_baseline(&comparison, file_of(text, size), &added, &error), &error);
    compare_conclude(&comparison);
    print(&comparison);
    comparison_release(&comparison);
    free(text);
    return 0;
}
