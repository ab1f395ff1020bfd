/* healcl ops: the operations of HEAL, from the operation table. */

#include "cli/command_job.h"
#include "kernels/variant.h"

/* ---------------------------------------------------------------- JSON */

static void add_forms(cJSON *object, const struct operation_table *table,
                      const struct operation *operation)
{
    cJSON *list = json_add_array(object, "forms");
    const struct form *form;
    for (size_t i = 0; (form = form_at(table, i)); i++) {
        if (form->operation != operation)
            continue;
        cJSON *about = json_add_object(list, NULL);
        json_add_string(about, "name", form->name);
        cJSON *arguments = json_add_array(about, "arguments");
        for (uint32_t j = 0; j < form->parameter_count; j++)
            JSON_ADD(json_add_object(arguments, NULL), STRING("name", form->parameters[j].name),
                     STRING("kind", parameter_traits[form->parameters[j].kind].name));
    }
}

/* The families of kernels. */
static void add_families(cJSON *document)
{
    cJSON *list = json_add_array(document, "families");
    const struct family *family;
    for (size_t place = 0; (family = family_at(place)); place++) {
        cJSON *object = json_add_object(list, NULL);
        JSON_ADD(object, STRING("name", family->name),
                 STRING("tuned_as", kernel_family_name(family->preference)));
        cJSON *steps = json_add_array(object, "steps");
        for (int kind = 0; kind < STEP_KINDS; kind++)
            if (family_of((enum step_kind)kind) == family)
                json_add_string(steps, NULL, step_traits[kind].name);
        cJSON *variants = json_add_array(object, "variants");
        for (size_t i = 0; i < family->count; i++) {
            const struct variant *variant = &family->variants[i];
            cJSON *about = json_add_object(variants, NULL);
            JSON_ADD(about, STRING("name", variant->name),
                     STRING("style", kernel_style_name(variant->style)),
                     STRING("when", variant->when), STRING("source", variant->source));
            cJSON *tunables = json_add_array(about, "tunables");
            for (int number = 0; number < TUNABLE_COUNT; number++)
                if (variant->tunables >> number & 1)
                    json_add_string(tunables, NULL, tunable_name((enum tunable)number));
        }
    }
}

/* Adds meanings of tunables, and the defaults of each kind of device. */
static void add_defaults(cJSON *document)
{
    static const cl_device_type types[] = {CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU,
                                           CL_DEVICE_TYPE_ACCELERATOR};
    cJSON *meanings = json_add_object(document, "tunables");
    for (int i = 0; i < TUNABLE_COUNT; i++)
        json_add_string(meanings, tunable_name((enum tunable)i), tunable_meaning((enum tunable)i));
    cJSON *defaults = json_add_object(document, "defaults");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct device_info info = {.type = types[i],
                                         .little_endian = true,
                                         .double_width = 4,
                                         .max_work_group_size = 1024,
                                         .unified_memory = types[i] == CL_DEVICE_TYPE_CPU};
        const struct device_tuning tuning = tuning_default(&info);
        char text[TUNING_TEXT_SIZE];
        tuning_format(&tuning, text);
        json_add_string(defaults, device_type_name(types[i]), text);
    }
}

static cJSON *report_ops(void *self)
{
    const struct command_job *job = self;
    const struct operation_table *table = operations_of_options(&job->options);
    cJSON *document = json_report();
    cJSON *list = json_add_array(document, "operations");
    for (size_t id = 0; id < operation_count(table); id++) {
        const struct operation *operation = operation_at(table, id);
        cJSON *object = json_add_object(list, NULL);
        char dtypes[DTYPES_TEXT_SIZE];
        JSON_ADD(object, STRING("name", operation->name), STRING("family", operation->family),
                 STRING("dtypes", dtype_rule_text(&operation->dtypes, dtypes)),
                 STRING("meaning", operation->meaning), STRING("manifest", operation->manifest));
        add_forms(object, table, operation);
    }
    add_families(document);
    add_defaults(document);
    return document;
}

/* ---------------------------------------------------------------- text */

enum { TEXT_WIDTH = 80, MEANING_INDENT = 6, WIDTH_MIN = 40 };

/* Returns "modmul_ttc(a, b, p, out)". */
static const char *signature_of(const cJSON *form)
{
    const char *text = xformat("%s(", json_text(form, "name"));
    JSON_EACH(argument, json_at(form, "arguments"))
    {
        text = xformat("%s%s%s", text, json_text(argument, "name"), argument->next ? ", " : ")");
    }
    return text;
}

/* Forms that look the same, and differ only in kinds of arguments, are printed once. */
static void print_forms(const cJSON *operation, FILE *stream, unsigned width)
{
    const char *last = "";
    JSON_EACH(form, json_at(operation, "forms"))
    {
        const char *text = signature_of(form);
        if (strcmp(text, last) != 0)
            text_wrap(stream, text, 0, 2, width);
        last = text;
    }
}

static void print_ops(void *self, const cJSON *document, const struct style *style)
{
    (void)self;
    unsigned width = style->width >= WIDTH_MIN ? style->width : TEXT_WIDTH;
    const char *family = "";
    JSON_EACH(operation, json_at(document, "operations"))
    {
        const char *next = json_text(operation, "family");
        if (strcmp(family, next) != 0)
            fprintf(style->stream, "%s%s\n", *family ? "\n" : "", next);
        family = next;
        print_forms(operation, style->stream, width);
        text_wrap(style->stream, view_fill(operation, "{meaning} ({dtypes})"), 0, MEANING_INDENT,
                  width);
    }
    putc('\n', style->stream);
    text_wrap(style->stream,
              "Every name may have a leading underscore. An argument named 'out' is a tensor that "
              "exists already. docs/OPS.md says more.",
              0, 0, width);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    JOB_OPTIONS,
};

const struct command command_ops = {
    .name = "ops",
    .summary = "list the operations of HEAL and their arguments",
    .help = "Lists the operations that a transcript may name, with every form of their arguments.",
    .options = options,
    .size = sizeof(struct command_job),
    .steps = {.report = report_ops, .print = print_ops},
};
