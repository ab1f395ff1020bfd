/* Which kernels of manifests ran the steps of a plan, for reports. */
#include <string.h>

#include "core/array.h"
#include "kernels/kernels.h"
#include "run/run.h"
#include "vendor/vendor.h"

static const char *replaced(const struct step *step)
{
    return step->kind == STEP_VENDOR ? step->vendor->operation->name : step_traits[step->kind].name;
}

/* The entry of a kernel for what it runs, a new one if need be; NULL when out of memory. */
static struct healcl_manifest_kernel *entry_of(struct healcl_report *report, size_t *capacity,
                                               const char *name, const char *what)
{
    size_t i = 0;
    while (i < report->manifest_kernel_count &&
           (strcmp(report->manifest_kernels[i].name, name) != 0 ||
            strcmp(report->manifest_kernels[i].what, what) != 0))
        i++;
    if (i < report->manifest_kernel_count)
        return &report->manifest_kernels[i];
    struct healcl_manifest_kernel *all =
        array_with_room(report->manifest_kernels, report->manifest_kernel_count, capacity,
                        sizeof *report->manifest_kernels);
    if (!all)
        return NULL;
    report->manifest_kernels = all;
    all[report->manifest_kernel_count] =
        (struct healcl_manifest_kernel){.name = name, .what = what};
    return &all[report->manifest_kernel_count++];
}

enum healcl_status report_manifest_kernels(const struct plan *plan,
                                           const struct healcl_device *device, struct arena *arena,
                                           struct healcl_report *report, struct healcl_error *error)
{
    size_t capacity = 0;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        bool is_tuned;
        const char *name = vendor_kernel_name(plan, step, device, &is_tuned);
        if (!name || step_is_left_out(step, device) || step_lack(step, device))
            continue;
        struct healcl_manifest_kernel *entry = entry_of(report, &capacity, name, replaced(step));
        if (!entry)
            NO_MEMORY(error);
        entry->tuned = is_tuned;
        entry->steps++;
    }
    /* Manifests may be gone before the report. */
    for (size_t i = 0; i < report->manifest_kernel_count; i++) {
        struct healcl_manifest_kernel *entry = &report->manifest_kernels[i];
        entry->name = arena_strdup(arena, entry->name);
        entry->what = arena_strdup(arena, entry->what);
        if (!entry->name || !entry->what)
            NO_MEMORY(error);
    }
    return HEALCL_OK;
}
