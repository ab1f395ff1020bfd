/* Which kernels of manifests ran the steps of a plan, for reports. */
#include <string.h>

#include "core/array.h"
#include "kernels/kernels.h"
#include "run/run.h"
#include "vendor/vendor.h"

static bool is_same(const struct healcl_manifest_kernel *a, const struct healcl_manifest_kernel *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->what, b->what) == 0 &&
           strcmp(a->manifest, b->manifest) == 0 && a->replaces == b->replaces &&
           a->tuned == b->tuned;
}

/* The entry of a kernel for what it runs, a new one if need be; NULL when out of memory. */
static struct healcl_manifest_kernel *entry_of(struct healcl_report *report, size_t *capacity,
                                               const struct healcl_manifest_kernel *kernel)
{
    size_t i = 0;
    while (i < report->manifest_kernel_count && !is_same(&report->manifest_kernels[i], kernel))
        i++;
    if (i < report->manifest_kernel_count)
        return &report->manifest_kernels[i];
    if (!ARRAY_GROW(report->manifest_kernels, report->manifest_kernel_count, capacity))
        return NULL;
    report->manifest_kernels[report->manifest_kernel_count] = *kernel;
    return &report->manifest_kernels[report->manifest_kernel_count++];
}

enum healcl_status report_manifest_kernels(const struct plan *plan,
                                           const struct healcl_device *device, struct arena *arena,
                                           struct healcl_report *report, struct healcl_error *error)
{
    size_t capacity = 0;
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        const struct manifest_kernel kernel = vendor_kernel_for(plan, step, device);
        if (!kernel.name || step_is_left_out(step, device) || step_lack(step, device))
            continue;
        const struct healcl_manifest_kernel told = {
            .name = kernel.name,
            .what = kernel.replaces ? kernel.replaces : step->vendor->operation->name,
            .manifest = kernel.file,
            .replaces = kernel.replaces != NULL,
            .tuned = kernel.is_tuned};
        struct healcl_manifest_kernel *entry = entry_of(report, &capacity, &told);
        if (!entry)
            NO_MEMORY(error);
        entry->steps++;
    }
    /* Manifests may be gone before the report. */
    for (size_t i = 0; i < report->manifest_kernel_count; i++) {
        struct healcl_manifest_kernel *entry = &report->manifest_kernels[i];
        entry->name = arena_strdup(arena, entry->name);
        entry->what = arena_strdup(arena, entry->what);
        entry->manifest = arena_strdup(arena, entry->manifest);
        if (!entry->name || !entry->what || !entry->manifest)
            NO_MEMORY(error);
    }
    return HEALCL_OK;
}
