/* Fuzzes all that is printed of a comparison: as many formats as there are, of what was saved and
 * may hold anything. What is written of it as JSON is a comparison again. */
#define _GNU_SOURCE
#include "comparison.h"

static void print(struct comparison *comparison)
{
    char *text = NULL;
    size_t size = 0;
    struct comparison again;
    FILE *stream = open_memstream(&text, &size);
    EXPECT(stream);
    compare_print_csv(comparison, stream);
    compare_print_markdown(comparison, stream);
    compare_print_junit(comparison, stream);
    compare_print_html(comparison, stream);
    compare_print_table(comparison, &(struct style){.stream = stream});
    fclose(stream);
    free(text);
    stream = open_memstream(&text, &size);
    EXPECT(stream);
    compare_print_json(comparison, stream);
    fclose(stream);
    begin(&again);
    add_baseline(&again, text, size);
    comparison_release(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct comparison comparison;
    char *text = text_of(data, size);
    begin(&comparison);
    add_baseline(&comparison, text, size);
    compare_conclude(&comparison);
    print(&comparison);
    comparison_release(&comparison);
    free(text);
    return 0;
}
