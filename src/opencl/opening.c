/* Devices that are listed, opened, tested where they have not been, and closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "opencl/internal.h"
#include "opencl/self_test.h"

/* ---------------------------------------------------------------- what there is */

enum healcl_status device_list(const struct opencl *cl, struct device_info **list, size_t *count,
                               struct healcl_error *error)
{
    struct device_listing listing;
    *list = NULL;
    *count = 0;
    enum healcl_status status = device_list_all(cl, &listing, error);
    if (status == HEALCL_OK)
        status = device_listing_check(&listing, error);
    if (status == HEALCL_OK) {
        *list = listing.devices;
        *count = listing.count;
        listing.devices = NULL; /* the caller's */
    }
    device_listing_release(&listing);
    return status;
}

/* ---------------------------------------------------------------- open and close */

/* With a package the tuning that it was made with: the same variants are picked then. */
static enum healcl_status tuning_of(struct healcl_device *device, struct device_tuning *tuning,
                                    struct healcl_error *error)
{
    const struct package *package = device->programs->package;
    char what[600];
    if (!package)
        return tuning_of_device(&device->info, tuning, error);
    snprintf(what, sizeof what, "the tuning of package " PATH_FORMAT, package->path);
    *tuning = tuning_default(&device->info);
    tuning->tuned_by = TUNED_BY_PACKAGE;
    if (tuning_parse(tuning, package_text(package, "tuning"), what, &device->info, error) ==
        HEALCL_OK)
        return HEALCL_OK;
    if (error)
        error->status = HEALCL_REFUSED;
    return HEALCL_REFUSED;
}

enum healcl_status device_note_findings(struct healcl_device *device, uint64_t loop_limit,
                                        bool launches_overlap, struct healcl_error *error)
{
    device->info.loop_limit = loop_limit;
    device->info.launches_overlap = launches_overlap;
    struct device_tuning tuning;
    TRY(tuning_of(device, &tuning, error));
    return device_set_tuning(device, &tuning, error);
}

/* The index of the device that the caller names by its id. */
static enum healcl_status find_device(const struct device_info *list, size_t count, cl_device_id id,
                                      size_t *index, struct healcl_error *error)
{
    for (*index = 0; *index < count; (*index)++)
        if (list[*index].device_id == id)
            return device_check_usable(&list[*index], error);
    FAIL(error, HEALCL_USAGE, "no platform lists that device");
}

static enum healcl_status choose(const struct opencl *cl,
                                 const struct healcl_device_options *options,
                                 struct device_info *info, struct healcl_error *error)
{
    struct device_info *list = NULL;
    size_t count = 0, index = 0;
    TRY(device_list(cl, &list, &count, error));
    if (options->package)
        device_allow_packaged(list, count);
    enum healcl_status status = options->device
                                    ? find_device(list, count, options->device, &index, error)
                                    : device_select(list, count, options->selector, &index, error);
    if (status == HEALCL_OK)
        *info = list[index];
    free(list);
    return status;
}

static void decide_binaries(struct healcl_device *device)
{
    const char *keep = getenv("HEALCL_KEEP_BINARIES");
    device->programs->keeps_binaries =
        !device->programs->package && ((keep && *keep) || device->info.binaries_are_cheap ||
                                       !(device->info.type & CL_DEVICE_TYPE_CPU));
}

static enum healcl_status open_chosen(struct healcl_device *device, struct healcl_error *error)
{
    struct device_programs *programs = device->programs;
    const struct package *package = programs->package;
    if (package)
        TRY(package_check(package, &device->info, error));
    TRY(tuning_of(device, &device->tuning, error));
    if (!package)
        kernel_choices_read_cached(&programs->choices, &device->info);
    else if (!kernel_choices_parse(&programs->choices, package_text(package, "choices")))
        REFUSE(error, "the choices of package " PATH_FORMAT " cannot be understood", package->path);
    TRY(device_create(device, error));
    programs->cache_directory = cache_directory();
    programs->forced_unsupported = getenv("HEALCL_LACKS");
    decide_binaries(device);
    return HEALCL_OK;
}

/* shared: the context of other handles, or NULL for one of its own. */
static enum healcl_status new_device(struct device_context *shared, struct healcl_device **device,
                                     struct healcl_error *error)
{
    struct healcl_device *made = calloc(1, sizeof *made);
    struct device_programs *programs = calloc(1, sizeof *programs);
    if (made && programs && !shared)
        shared = context_make();
    if (!made || !programs || !shared) {
        free(made);
        free(programs);
        NO_MEMORY(error);
    }
    made->programs = programs;
    context_enter(made, shared);
    *device = made;
    return HEALCL_OK;
}

static enum healcl_status choose_and_open(const struct opencl *cl,
                                          const struct healcl_device_options *options,
                                          struct healcl_device **device, struct healcl_error *error)
{
    *device = NULL;
    struct device_info info;
    TRY(choose(cl, options, &info, error));
    struct healcl_device *opened;
    TRY(new_device(NULL, &opened, error));
    opened->cl = cl;
    opened->info = info;
    opened->callers = *options;
    opened->callers.queue = NULL; /* until it is taken */
    opened->callers.package = NULL;
    enum healcl_status status =
        options->package ? package_read(options->package, &opened->programs->package, error)
                         : HEALCL_OK;
    if (status == HEALCL_OK) {
        status = open_chosen(opened, error);
        if (status != HEALCL_OK)
            error_prefix(error, "device %u:%u %s: ", info.platform_index, info.device_index,
                         info.name);
    }
    if (status != HEALCL_OK) {
        healcl_device_close(opened);
        return status;
    }
    *device = opened;
    return HEALCL_OK;
}

enum healcl_status device_open_with(const struct opencl *cl,
                                    const struct healcl_device_options *options,
                                    struct healcl_device **device, struct healcl_error *error)
{
    opening_begin();
    enum healcl_status status = choose_and_open(cl, options, device, error);
    opening_end();
    return status;
}

enum healcl_status device_open(const struct opencl *cl, const char *selector,
                               struct healcl_device **device, struct healcl_error *error)
{
    return device_open_with(cl, &(struct healcl_device_options){.selector = selector}, device,
                            error);
}

void healcl_device_close(struct healcl_device *device)
{
    if (!device)
        return;
    device_turn_begin(device);
    device_clear(device);
    device_programs_release(device);
    device_release(device); /* and the turn ends */
    free(device->programs);
    free(device);
}

/* ---------------------------------------------------------------- another handle */

static enum healcl_status add_sources(struct healcl_device *device,
                                      const struct program_source *source,
                                      struct healcl_error *error)
{
    if (!source)
        return HEALCL_OK;
    TRY(add_sources(device, source->next, error)); /* the last one that is added goes first */
    return device_add_program(device, source->name, source->text, error);
}

/* Copies what the handles on a context have alike, each its own. */
static enum healcl_status copy_settings(struct healcl_device *device,
                                        const struct healcl_device *first,
                                        struct healcl_error *error)
{
    struct device_programs *programs = device->programs;
    const struct device_programs *others = first->programs;
    device->cl = first->cl;
    device->info = first->info;
    device->tuning = first->tuning;
    device->callers = first->callers;
    device->callers.queue = NULL; /* until it is taken */
    programs->package = others->package;
    programs->choices = others->choices;
    programs->keeps_binaries = others->keeps_binaries;
    programs->distrusted = others->distrusted;
    programs->forced_unsupported = others->forced_unsupported;
    programs->cache_directory = others->cache_directory ? strdup(others->cache_directory) : NULL;
    NEED_MEMORY(programs->cache_directory || !others->cache_directory, error);
    return add_sources(device, others->added, error);
}

enum healcl_status device_open_beside(struct healcl_device *first, struct healcl_device **device,
                                      struct healcl_error *error)
{
    struct healcl_device *opened;
    TRY(new_device(first->shared, &opened, error));
    enum healcl_status status = copy_settings(opened, first, error);
    if (status == HEALCL_OK)
        status = device_create_beside(opened, first, error);
    if (status == HEALCL_OK)
        *device = opened;
    else
        healcl_device_close(opened);
    return status;
}

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
        decide_binaries(*device);
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

enum healcl_status healcl_device_open_with(const struct healcl_device_options *options,
                                           struct healcl_device **device,
                                           struct healcl_error *error)
{
    static const struct healcl_device_options none;
    NEED(device, error);
    if (!options)
        options = &none;
    if (options->queue && !options->context)
        FAIL(error, HEALCL_USAGE, "a queue comes with its context");
    if (options->context && !options->device && !options->selector)
        FAIL(error, HEALCL_USAGE, "a context comes with a device of its own");
    if (!options->allocate != !options->release)
        FAIL(error, HEALCL_USAGE, "allocate and release come together");
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
    TRY(device_list(&opencl_loader, &infos, count, error));
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
