/* A comparison as a page: page.html, with the document in it. */
#include <string.h>

#include "cli/compare_columns.h"
#include "tools/xmalloc.h"

extern const char healcl_cli_page_html[]; /* embedded */

static void put_lead(const struct comparison *comparison, FILE *stream)
{
    char *lead = compare_lead(comparison);
    compare_print_text(stream, lead);
    free(lead);
}

/* The document, what the page says of it, and the columns of its tables. In a script element "<"
 * could end it. */
static void put_json(const struct comparison *comparison, FILE *stream)
{
    cJSON *all = cJSON_CreateObject(), *run;
    cJSON *verdicts = cJSON_AddArrayToObject(all, "verdicts");
    char outcome[OUTCOME_SIZE];
    cJSON_ArrayForEach(run, comparison->runs)
    {
        compare_outcome_text(comparison, run, outcome);
        cJSON_AddItemToArray(verdicts, cJSON_CreateString(outcome));
    }
    cJSON_AddItemReferenceToObject(all, "comparison", comparison->top);
    compare_put(all, "columns", compare_columns_json(&compare_run_columns, comparison, ON_PAGE));
    compare_put(all, "details", compare_columns_json(&compare_run_columns, comparison, IN_DETAILS));
    compare_put(all, "facts", compare_columns_json(&compare_device_columns, comparison, ON_PAGE));
    compare_put_text(all, "too_small", compare_too_small);
    char *text = cJSON_PrintUnformatted(all);
    for (const char *c = text; *c; c++)
        fputs(*c == '<' ? "\\u003c" : (char[]){*c, 0}, stream);
    cJSON_free(text);
    cJSON_Delete(all);
}

void compare_print_html(const struct comparison *comparison, FILE *stream)
{
    static const struct {
        const char *mark;
        void (*put)(const struct comparison *comparison, FILE *stream);
    } places[] = {
        {"{{lead}}", put_lead}, {"{{table}}", compare_print_plain}, {"{{json}}", put_json}};
    const char *text = healcl_cli_page_html;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *mark = strstr(text, places[i].mark);
        if (!mark)
            break;
        (void)fwrite(text, 1, (size_t)(mark - text), stream);
        places[i].put(comparison, stream);
        text = mark + strlen(places[i].mark);
    }
    fputs(text, stream);
}
