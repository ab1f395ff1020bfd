/* The operations of HEAL, out of the one table: `healcl ops`. */
#include <string.h>

#include "report/members.h"
#include "report/signature.h"
#include "report/text.h"

enum { TEXT_WIDTH = 80, INDENT = 2, MEANING_INDENT = 6, WIDTH_MIN = 40, PARAGRAPH_SIZE = 1024 };

void report_operations(const struct operation_table *table, const struct style *style)
{
    unsigned width = style->width >= WIDTH_MIN ? style->width : TEXT_WIDTH;
    const char *family = "";
    for (size_t id = 0; id < operation_count(table); id++) {
        const struct operation *operation = operation_at(table, id);
        const struct form *form;
        if (strcmp(operation->family, family) != 0) {
            family = operation->family;
            fprintf(style->stream, "%s%s\n", id > 0 ? "\n" : "", family);
        }
        char signature[SIGNATURE_SIZE];
        for (size_t i = 0; (form = form_at(table, i)); i++)
            if (form->operation == operation && !signature_repeats(form)) {
                signature_text(form, signature);
                fprintf(style->stream, "%*s%s\n", INDENT, "", signature);
            }
        char text[PARAGRAPH_SIZE], dtypes[DTYPES_TEXT_SIZE];
        snprintf(text, sizeof text, "%s (%s)", operation->meaning,
                 dtype_rule_text(&operation->dtypes, dtypes));
        text_wrap(style->stream, text, MEANING_INDENT, width);
    }
    putc('\n', style->stream);
    text_wrap(style->stream,
              "Every name may have a leading underscore. An argument named 'out' is a tensor that "
              "exists already. docs/OPS.md tells more.",
              0, width);
}

static void add_forms(struct json *json, cJSON *object, const struct operation_table *table,
                      const struct operation *operation)
{
    cJSON *list = json_array(json, object, "forms");
    const struct form *form;
    for (size_t i = 0; (form = form_at(table, i)); i++) {
        if (form->operation != operation)
            continue;
        cJSON *about = json_object(json, list, NULL);
        json_string(json, about, "name", form->name);
        cJSON *arguments = json_array(json, about, "arguments");
        for (uint32_t j = 0; j < form->parameter_count; j++) {
            cJSON *argument = json_object(json, arguments, NULL);
            json_string(json, argument, "name", form->parameters[j].name);
            json_string(json, argument, "kind", parameter_traits[form->parameters[j].kind].name);
        }
    }
}

enum healcl_status report_operations_json(const struct operation_table *table, FILE *stream)
{
    struct json json;
    json_begin(&json, healcl_version());
    cJSON *list = json_array(&json, json.top, "operations");
    for (size_t id = 0; id < operation_count(table); id++) {
        const struct operation *operation = operation_at(table, id);
        cJSON *object = json_object(&json, list, NULL);
        json_string(&json, object, "name", operation->name);
        json_string(&json, object, "family", operation->family);
        char dtypes[DTYPES_TEXT_SIZE];
        json_string(&json, object, "dtypes", dtype_rule_text(&operation->dtypes, dtypes));
        json_string(&json, object, "meaning", operation->meaning);
        json_string_or_null(&json, object, "manifest", operation->manifest);
        add_forms(&json, object, table, operation);
    }
    return json_print(&json, stream);
}
