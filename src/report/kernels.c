/* Which kernels serve a plan's steps on a device, and why not others. */
#include <inttypes.h>
#include <string.h>

#include "kernels/variant.h"
#include "report/members.h"
#include "report/table.h"
#include "report/text.h"

/* Why a variant does not run some steps. */
struct obstacle {
    const char *reason;
    uint64_t steps;
};

enum { OBSTACLES_MAX = 8, REASON_TEXT_SIZE = 512 };

/* What a variant does for all steps of a kind. */
struct service {
    uint64_t steps; /* that it runs */
    struct obstacle obstacles[OBSTACLES_MAX];
    size_t obstacle_count;
};

static void add_obstacle(struct service *service, const char *reason)
{
    size_t i = 0;
    while (i < service->obstacle_count && strcmp(service->obstacles[i].reason, reason) != 0)
        i++;
    if (i == OBSTACLES_MAX)
        return;
    if (i == service->obstacle_count)
        service->obstacles[service->obstacle_count++] = (struct obstacle){.reason = reason};
    service->obstacles[i].steps++;
}

/* Asks for every step of a kind. Returns how many there are. */
static uint64_t serve(const struct plan *plan, const struct healcl_device *device,
                      const struct family *family, enum step_kind kind,
                      const struct variant *variant, struct service *service)
{
    uint64_t steps = 0;
    *service = (struct service){.steps = 0};
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        if (step->kind != kind || step_is_left_out(step, device))
            continue;
        const struct variant *serves = variant_for(step, device);
        const char *lack = step_lack(step, device);
        const char *obstacle = variant_obstacle(family, variant, step, device);
        steps++;
        if (lack)
            add_obstacle(service, lack);
        else if (vendor_kernel_for(plan, step, device).name)
            add_obstacle(service, "a manifest's kernel does");
        else if (variant == serves)
            service->steps++;
        else
            add_obstacle(service, obstacle ? obstacle : "one before it can");
    }
    return steps;
}

static void reasons_text(const struct service *service, char text[REASON_TEXT_SIZE])
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < service->obstacle_count && used < REASON_TEXT_SIZE; i++)
        used += (size_t)snprintf(text + used, REASON_TEXT_SIZE - used, "%s%s (%" PRIu64 ")",
                                 i > 0 ? ", " : "", service->obstacles[i].reason,
                                 service->obstacles[i].steps);
}

/* Kernels of manifests that run steps of a kind, and how many each. */
struct vendors {
    struct {
        const char *kernel;
        uint64_t steps;
    } of[16];
    size_t count;
};

static struct vendors find_vendors(const struct plan *plan, const struct healcl_device *device,
                                   enum step_kind kind)
{
    struct vendors vendors = {.count = 0};
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        const char *name = step->kind == kind && !step_is_left_out(step, device)
                               ? vendor_kernel_for(plan, step, device).name
                               : NULL;
        size_t place = 0;
        while (name && place < vendors.count && strcmp(vendors.of[place].kernel, name) != 0)
            place++;
        if (!name || place == sizeof vendors.of / sizeof *vendors.of)
            continue;
        vendors.count += place == vendors.count;
        vendors.of[place].kernel = name;
        vendors.of[place].steps++;
    }
    return vendors;
}

static void add_vendor_rows(struct table *table, const struct plan *plan,
                            const struct healcl_device *device, enum step_kind kind)
{
    const struct vendors vendors = find_vendors(plan, device, kind);
    for (size_t i = 0; i < vendors.count; i++) {
        table_cell(table, "%s", step_traits[kind].name);
        table_cell(table, "%s", vendors.of[i].kernel);
        table_cell(table, "vendor");
        table_cell(table, "%" PRIu64, vendors.of[i].steps);
        table_cell(table, "%s", "");
    }
}

static void add_rows(struct table *table, const struct plan *plan,
                     const struct healcl_device *device, enum step_kind kind)
{
    const struct family *family = family_of(kind);
    struct service service;
    char text[REASON_TEXT_SIZE];
    for (size_t i = 0; family && i < family->count; i++) {
        const struct variant *variant = &family->variants[i];
        if (serve(plan, device, family, kind, variant, &service) == 0)
            return;
        reasons_text(&service, text);
        table_cell(table, "%s", i == 0 ? step_traits[kind].name : "");
        table_cell(table, "%s", variant->name);
        table_cell(table, "%s", kernel_shape_name(variant->shape));
        table_cell(table, "%" PRIu64, service.steps);
        table_cell(table, "%s", text);
    }
}

enum healcl_status report_kernels(const struct plan *plan, const struct healcl_device *device,
                                  const struct style *style)
{
    static const struct table_column columns[] = {{"step", TABLE_LEFT, false},
                                                  {"kernel", TABLE_LEFT, false},
                                                  {"shape", TABLE_LEFT, false},
                                                  {"steps", TABLE_RIGHT, false},
                                                  {"why not (steps)", TABLE_LEFT, true}};
    struct table *table = table_create(columns, 5);
    fprintf(style->stream, "\n");
    report_label(style, "device", "%s (%s)", device->info.name, device->info.platform);
    fprintf(style->stream, "\n");
    for (int kind = 0; kind < STEP_KINDS; kind++) {
        add_vendor_rows(table, plan, device, (enum step_kind)kind);
        if (kind != STEP_VENDOR)
            add_rows(table, plan, device, (enum step_kind)kind);
    }
    return table_print(table, style->stream, style->width);
}

void report_kernels_members(struct json *json, cJSON *object, const struct plan *plan,
                            const struct healcl_device *device)
{
    report_device_members(json, json_object(json, object, "device"), &device->info);
    cJSON *list = json_array(json, object, "kernels");
    for (int kind = 0; kind < STEP_KINDS; kind++) {
        const struct vendors vendors = find_vendors(plan, device, (enum step_kind)kind);
        const struct family *family = kind == STEP_VENDOR ? NULL : family_of((enum step_kind)kind);
        struct service service;
        for (size_t i = 0; i < vendors.count; i++) {
            cJSON *about = json_object(json, list, NULL);
            json_string(json, about, "step", step_traits[kind].name);
            json_string(json, about, "family", "vendor");
            json_string(json, about, "kernel", vendors.of[i].kernel);
            json_string(json, about, "shape", "vendor");
            json_number(json, about, "steps", vendors.of[i].steps);
            (void)json_array(json, about, "why_not");
        }
        for (size_t i = 0; family && i < family->count; i++) {
            const struct variant *variant = &family->variants[i];
            if (serve(plan, device, family, (enum step_kind)kind, variant, &service) == 0)
                break;
            cJSON *about = json_object(json, list, NULL);
            json_string(json, about, "step", step_traits[kind].name);
            json_string(json, about, "family", family->name);
            json_string(json, about, "kernel", variant->name);
            json_string(json, about, "shape", kernel_shape_name(variant->shape));
            json_number(json, about, "steps", service.steps);
            cJSON *obstacles = json_array(json, about, "why_not");
            for (size_t j = 0; j < service.obstacle_count; j++) {
                cJSON *obstacle = json_object(json, obstacles, NULL);
                json_string(json, obstacle, "reason", service.obstacles[j].reason);
                json_number(json, obstacle, "steps", service.obstacles[j].steps);
            }
        }
    }
}
