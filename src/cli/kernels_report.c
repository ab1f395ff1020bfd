/* Which kernels serve a plan's steps on a device, and why not others. */
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"
#include "kernels/variant.h"

/* Why a variant does not run a step; NULL where it does. */
static const char *why_not(const struct plan *plan, const struct step *step,
                           const struct variant *variant, const struct healcl_device *device)
{
    const struct family *family = family_of(step->kind);
    const char *lack = step_lack(step, device);
    if (lack || vendor_kernel_for(plan, step, device).name)
        return lack ? lack : "a manifest's kernel does";
    if (variant_for(step, device) == variant)
        return NULL;
    const char *reason = variant_obstacle(family, variant, step, device);
    return reason ? reason : "one before it can";
}

static cJSON *add_kernel(cJSON *list, enum step_kind kind, const char *family, const char *kernel,
                         const char *style)
{
    cJSON *object = json_add_object(list, NULL);
    JSON_ADD(object, STRING("step", step_traits[kind].name), STRING("family", family),
             STRING("kernel", kernel), STRING("style", style));
    json_increase(object, "steps", 0);
    (void)json_add_array(object, "why_not");
    return object;
}

/* Counts the steps of a kind that a variant runs, and that it does not by reason. */
static void add_variant(cJSON *list, const struct plan *plan, const struct healcl_device *device,
                        enum step_kind kind, const struct variant *variant)
{
    cJSON *object = NULL;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        if (step->kind != kind || step_is_left_out(step, device))
            continue;
        if (!object)
            object = add_kernel(list, kind, family_of(kind)->name, variant->name,
                                kernel_style_name(variant->style));
        const char *reason = why_not(plan, step, variant, device);
        cJSON *reasons = cJSON_GetObjectItemCaseSensitive(object, "why_not");
        json_increase(reason ? json_row(reasons, "reason", reason) : object, "steps", 1);
    }
}

/* Kernels of manifests that run steps of a kind. */
static void add_vendors(cJSON *list, const struct plan *plan, const struct healcl_device *device,
                        enum step_kind kind)
{
    cJSON *counts = cJSON_CreateArray(), *count;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        const char *name = step->kind == kind && !step_is_left_out(step, device)
                               ? vendor_kernel_for(plan, step, device).name
                               : NULL;
        if (name)
            json_increase(json_row(counts, "name", name), "steps", 1);
    }
    cJSON_ArrayForEach(count, counts)
    {
        cJSON *object = add_kernel(list, kind, "vendor",
                                   cJSON_GetStringValue(json_at(count, "name")), "vendor");
        json_increase(object, "steps", json_number_at(count, "steps"));
    }
    cJSON_Delete(counts);
}

void report_add_kernels(cJSON *document, const struct plan *plan,
                        const struct healcl_device *device)
{
    report_add_device(json_add_object(document, "device"), &device->info);
    cJSON *list = json_add_array(document, "kernels");
    for (int kind = 0; kind < STEP_KINDS; kind++) {
        const struct family *family = kind == STEP_VENDOR ? NULL : family_of((enum step_kind)kind);
        add_vendors(list, plan, device, (enum step_kind)kind);
        for (size_t i = 0; family && i < family->count; i++)
            add_variant(list, plan, device, (enum step_kind)kind, &family->variants[i]);
    }
}

void report_kernels_text(const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {{"step", "{step}", 0},
                                                 {"kernel", "{kernel}", 0},
                                                 {"style", "{style}", 0},
                                                 {"steps", "{steps}", VIEW_RIGHT},
                                                 {"why not (steps)", "{why}", VIEW_SHRINKS}};
    cJSON *rows = cJSON_Duplicate(json_at(document, "kernels"), true), *row, *reason;
    const char *last = "";
    cJSON_ArrayForEach(row, rows)
    {
        cJSON *why = json_add_array(row, "why");
        cJSON_ArrayForEach(reason, json_at(row, "why_not"))
        {
            char *text = view_fill(reason, "{reason} ({steps})");
            json_add_string(why, NULL, text);
            free(text);
        }
        cJSON *step = cJSON_GetObjectItemCaseSensitive(row, "step");
        if (strcmp(step->valuestring, last) == 0)
            cJSON_SetValuestring(step, "");
        else
            last = cJSON_GetStringValue(step);
    }
    putc('\n', style->stream);
    view_line(style, document, "device", "{device.name} ({device.platform})");
    putc('\n', style->stream);
    VIEW_TABLE(style, rows, columns);
    cJSON_Delete(rows);
}
