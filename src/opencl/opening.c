/* Opens devices for runs and for callers of the library: with a self-test if necessary. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/internal.h"

/* ---------------------------------------------------------------- tested */

static enum healcl_status open_and_test(const struct opencl *cl,
                                        const struct healcl_device_options *options,
                                        const struct device_opening *opening,
                                        struct healcl_device **device, struct healcl_error *error)
{
    static const struct device_opening nothing;
    char reason[SELF_TEST_REASON_SIZE];
    enum healcl_status status = HEALCL_OK;
    if (!opening)
        opening = &nothing;
    TRY(device_open_with(cl, options, device, error));
    (*device)->programs->ahead.board = opening->board;
    (*device)->programs->builder = opening->builder;
    /* A package's programs prove themselves each time: an image may be the whole device, as an
     * FPGA's is. */
    if ((*device)->programs->package ||
        self_test_read_cached(&(*device)->info, reason) != SELF_TEST_PASSED ||
        !self_test_covers(*device)) {
        device_log(*device, "%s is tested%s", (*device)->info.name,
                   (*device)->programs->package ? "" : ", as it has not been before");
        device_build_ahead(*device, &opening->lister, opening->trace);
        status = self_test_run_and_cache(*device, opening->trace, error);
        binaries_decide(*device);
        const struct device_info *found = &(*device)->info;
        if (found->failed_families || found->multiply_wrong || found->compiler_limit)
            device_build_abandon(*device); /* other kernels run */
    }
    if (status == HEALCL_OK && options->queue)
        status = device_take_queue(*device, options->queue, error);
    if (status != HEALCL_OK) {
        healcl_device_close(*device);
        *device = NULL;
        return status;
    }
    (*device)->programs->first_launches = 0; /* no run has launched anything yet */
    (*device)->programs->lister = opening->lister;
    return HEALCL_OK;
}

/* Locked as a whole: threads that open a device which has not been tested yet test it once. */
enum healcl_status device_open_for_run(const struct opencl *cl,
                                       const struct healcl_device_options *options,
                                       const struct device_opening *opening,
                                       struct healcl_device **device, struct healcl_error *error)
{
    opening_begin();
    enum healcl_status status = open_and_test(cl, options, opening, device, error);
    opening_end();
    return status;
}

enum healcl_status device_open_tested(const struct opencl *cl, const char *selector,
                                      struct healcl_device **device, struct healcl_error *error)
{
    return device_open_for_run(cl, &(struct healcl_device_options){.selector = selector}, NULL,
                               device, error);
}

/* ---------------------------------------------------------------- for callers of the library */

void healcl_device_close(struct healcl_device *device)
{
    if (!device)
        return;
    device_build_abandon(device);
    device_close(device);
}

enum healcl_status healcl_device_open_with(const struct healcl_device_options *options,
                                           struct healcl_device **device,
                                           struct healcl_error *error)
{
    static const struct healcl_device_options none;
    NEED(device, error);
    if (!options)
        options = &none;
    if (options->queue && !options->context)
        FAIL(error, HEALCL_USAGE, "a queue needs its context to be given, too");
    if (options->context && !options->device && !options->selector)
        FAIL(error, HEALCL_USAGE, "a context needs one of its devices to be given, too");
    if (!options->allocate != !options->release)
        FAIL(error, HEALCL_USAGE, "allocate and release must be given together");
    return device_open_for_run(&opencl_loader, options, NULL, device, error);
}

enum healcl_status healcl_device_open(const char *selector, struct healcl_device **device,
                                      struct healcl_error *error)
{
    NEED(device, error);
    return device_open_tested(&opencl_loader, selector, device, error);
}

static struct healcl_device_info public_info(const struct device_info *info)
{
    struct healcl_device_info public = {.compute_units = info->compute_units,
                                        .memory_bytes = info->global_memory_bytes,
                                        .shares_memory = info->unified_memory};
    const char *unusable = device_unusable(info);
    snprintf(public.selector, sizeof public.selector, "%u:%u", info->platform_index,
             info->device_index);
    memcpy(public.name, info->name, sizeof public.name);
    memcpy(public.vendor, info->vendor, sizeof public.vendor);
    memcpy(public.platform, info->platform, sizeof public.platform);
    memcpy(public.driver, info->driver, sizeof public.driver);
    memcpy(public.version, info->version, sizeof public.version);
    snprintf(public.unusable, sizeof public.unusable, "%s", unusable ? unusable : "");
    public.type = info->type & CL_DEVICE_TYPE_CPU           ? HEALCL_DEVICE_CPU
                  : info->type & CL_DEVICE_TYPE_GPU         ? HEALCL_DEVICE_GPU
                  : info->type & CL_DEVICE_TYPE_ACCELERATOR ? HEALCL_DEVICE_ACCELERATOR
                                                            : HEALCL_DEVICE_OTHER;
    return public;
}

enum healcl_status healcl_device_list(struct healcl_device_info **list, size_t *count,
                                      struct healcl_error *error)
{
    NEED(list, error);
    NEED(count, error);
    struct device_info *infos = NULL;
    TRY(device_list(&opencl_loader, false, &infos, count, error));
    *list = calloc(*count + 1, sizeof **list);
    for (size_t i = 0; *list && i < *count; i++)
        (*list)[i] = public_info(&infos[i]);
    free(infos);
    NEED_MEMORY(*list, error);
    return HEALCL_OK;
}

void healcl_device_list_free(struct healcl_device_info *list)
{
    free(list);
}

struct healcl_device_info healcl_device_describe(const struct healcl_device *device)
{
    return device ? public_info(&device->info) : (struct healcl_device_info){.selector = ""};
}
