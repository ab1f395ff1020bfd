/* Kernels of vendors' manifests. */
#include "vendor/vendor.h"

#include <string.h>

#include "kernels/kernels.h"

static bool is_for_device(const struct vendor_kernel *kernel, const struct healcl_device *device)
{
    const struct device_info *info = &device->info;
    if (kernel->type && strcmp(kernel->type, device_type_name(info->type)) != 0)
        return false;
    return !kernel->device || strstr(info->name, kernel->device) ||
           strstr(info->platform, kernel->device);
}

static bool is_in_chunks(const struct tensor *tensor, const struct healcl_device *device)
{
    return tensor && storage_bytes(tensor->storage) > device->chunk_bytes;
}

static bool has_chunks(const struct step *step, const struct healcl_device *device)
{
    bool found = is_in_chunks(step->out, device);
    for (int i = 0; i < STEP_INPUTS; i++)
        found = found || is_in_chunks(step->in[i], device);
    return found;
}

/* The first kernel that can run a step on a device, or NULL. */
static const struct vendor_kernel *kernel_for(const struct step *step,
                                              const struct healcl_device *device,
                                              const struct vendor_launch **launch)
{
    const struct vendor_call *call = step->vendor;
    if (device_lacks(device, call->operation->name))
        return NULL;
    for (uint32_t i = 0; i < call->operation->kernel_count; i++) {
        *launch = &call->launches[i];
        if ((*launch)->possible && !device_has_failed(device, call->operation->kernels[i]) &&
            is_for_device(call->operation->kernels[i], device) &&
            !(step->kind == STEP_VENDOR && has_chunks(step, device)))
            return call->operation->kernels[i];
    }
    return NULL;
}

bool vendor_has_failed(const struct step *step, const struct healcl_device *device)
{
    const struct vendor_operation *operation = step->vendor->operation;
    bool failed = false;
    for (uint32_t i = 0; i < operation->kernel_count; i++)
        failed |= device_has_failed(device, operation->kernels[i]);
    return failed;
}

bool vendor_has_kernel(const struct step *step, const struct healcl_device *device)
{
    const struct vendor_launch *launch;
    return kernel_for(step, device, &launch) != NULL;
}

enum healcl_status vendor_note_failed(const struct step *step, struct healcl_device *device,
                                      struct healcl_error *error)
{
    const struct vendor_launch *launch;
    return device_note_failed(device, kernel_for(step, device, &launch), error);
}

bool step_is_left_out(const struct step *step, const struct healcl_device *device)
{
    const struct vendor_launch *launch;
    if (step->side == STEP_ALWAYS)
        return false;
    bool has_kernel = device && kernel_for(step, device, &launch);
    return has_kernel != (step->side == STEP_OF_KERNEL);
}

static const struct tensor *tensor_at(const struct step *step, int number)
{
    return number == VENDOR_OUT ? step->out : step->in[number];
}

/* ---------------------------------------------------------------- native code */

struct native_call {
    const struct vendor_kernel *kernel;
    struct healcl_vendor_call call;
    struct healcl_vendor_argument arguments[VENDOR_ARGUMENTS_MAX];
    struct healcl_vendor_tensor tensors[VENDOR_ARGUMENTS_MAX];
};

static enum healcl_status call_native(void *context, struct healcl_error *error)
{
    const struct native_call *native = context;
    char message[HEALCL_VENDOR_MESSAGE_SIZE] = "";
    int code = native->kernel->native(&native->call, message);
    message[sizeof message - 1] = 0;
    if (code != 0)
        FAIL(error, HEALCL_DEVICE, "native code '%s' failed with %d%s%s", native->kernel->kernel,
             code, *message ? ": " : "", message);
    return HEALCL_OK;
}

MUST_CHECK static enum healcl_status launch_native(struct launcher *self, const struct step *step,
                                                   const struct vendor_kernel *kernel,
                                                   const struct vendor_launch *launch,
                                                   struct healcl_error *error)
{
    struct healcl_device *device = self->device;
    struct native_call native = {.kernel = kernel,
                                 .call = {.version = HEALCL_VENDOR_VERSION,
                                          .context = device->context,
                                          .device = device->info.device_id,
                                          .queue = device->compute,
                                          .argument_count = launch->argument_count}};
    native.call.arguments = native.arguments;
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const int number = launch->arguments[i].tensor;
        const struct buffer *buffer;
        native.arguments[i].integer = launch->arguments[i].value;
        if (number == NO_INPUT)
            continue;
        const struct tensor *tensor = tensor_at(step, number);
        TRY(launcher_buffer(self, tensor->storage, &buffer, error));
        native.tensors[i] = (struct healcl_vendor_tensor){
            .memory = buffer->chunks[0],
            .element_bytes = (uint32_t)dtype_size(tensor->storage->dtype),
            .rank = tensor->layout.rank,
            .offset = tensor->layout.offset,
            .shape = tensor->layout.shape,
            .stride = tensor->layout.stride};
        native.arguments[i].tensor = &native.tensors[i];
    }
    return device_call(device, call_native, &native, error);
}

/* ---------------------------------------------------------------- launches */

MUST_CHECK static enum healcl_status launch(struct launcher *self, const struct step *step,
                                            const struct vendor_kernel *kernel,
                                            const struct vendor_launch *launch,
                                            struct healcl_error *error)
{
    if (kernel->native)
        return launch_native(self, step, kernel, launch, error);
    struct job job;
    job_init(&job, self, step, kernel->program, kernel->kernel);
    job.launch.source = kernel->source;
    strcpy(job.launch.options, launch->options);
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const int number = launch->arguments[i].tensor;
        const struct buffer *buffer;
        if (number == NO_INPUT) {
            job_add_long(&job, launch->arguments[i].value);
            continue;
        }
        TRY(launcher_buffer(self, tensor_at(step, number)->storage, &buffer, error));
        if (number == VENDOR_OUT)
            job_add_written_table(&job, buffer);
        else
            job_add_table(&job, buffer);
    }
    job.launch.groups = launch->groups;
    job.launch.local_size = launch->local;
    return device_launch(self->device, &job.launch, error);
}

/* ---------------------------------------------------------------- operations */

MUST_CHECK static enum healcl_status launch_operation(struct launcher *self,
                                                      const struct step *step,
                                                      const struct variant *variant,
                                                      struct healcl_error *error)
{
    (void)variant;
    const struct vendor_launch *made;
    const struct vendor_kernel *kernel = kernel_for(step, self->device, &made);
    if (!kernel)
        REFUSE(error, "it has no kernel for %s, and no body", self->device->info.name);
    return launch(self, step, kernel, made, error);
}

static const struct variant variants[] = {
    {"a manifest's", VARIANT_GENERAL, NULL, launch_operation, 0, "", NULL, "a vendor's", "always"},
};

const struct family family_vendor = FAMILY_OF(vendor, elementwise, variants);

/* ---------------------------------------------------------------- built-in kinds of steps */

static void set_values(const struct step *step, struct expression_values *values)
{
    *values = (struct expression_values){
        .integers = {[VENDOR_INTEGERS] = step->value[0], [VENDOR_INTEGERS + 1] = step->value[1]}};
    for (int i = 0; i <= STEP_INPUTS; i++) {
        const struct tensor *tensor = tensor_at(step, i);
        if (!tensor)
            continue;
        values->layouts[i] = &tensor->layout;
        values->dtypes[i] = tensor->storage->dtype;
    }
}

/* Whether passes have made a step of a form that docs/VENDORS.md does not tell of. */
static bool is_of_passes(const struct step *step)
{
    return (step->kind == STEP_INTT && step->in[5]) ||
           (step->kind == STEP_MODMUL_AXIS_SUM && step->in[1]->layout.rank != 3);
}

/* A kernel of a manifest for a step; NULL where there is none. */
static const struct vendor_kernel *replacement_for(const struct plan *plan, const struct step *step,
                                                   const struct healcl_device *device,
                                                   struct vendor_launch *made)
{
    const struct vendor_operations *all = vendor_of_table(plan->table);
    const struct vendor_replacement *next = all ? all->replacements[step->kind] : NULL;
    struct expression_values values;
    if (!next || is_of_passes(step) || has_chunks(step, device))
        return NULL;
    set_values(step, &values);
    for (; next; next = next->next)
        if (is_for_device(next->kernel, device) &&
            vendor_launch_make(next->kernel, &next->names, &values, NULL, made, NULL) ==
                HEALCL_OK &&
            made->possible)
            return next->kernel;
    return NULL;
}

const char *vendor_kernel_name(const struct plan *plan, const struct step *step,
                               const struct healcl_device *device)
{
    struct vendor_launch made;
    const struct vendor_launch *launched;
    const struct vendor_kernel *kernel = step->kind == STEP_VENDOR
                                             ? kernel_for(step, device, &launched)
                                             : replacement_for(plan, step, device, &made);
    return kernel ? kernel->kernel : NULL;
}

enum healcl_status launch_replacement(struct launcher *self, const struct step *step,
                                      bool *launched, struct healcl_error *error)
{
    struct vendor_launch made;
    const struct vendor_kernel *kernel = replacement_for(self->plan, step, self->device, &made);
    *launched = kernel != NULL;
    return kernel ? launch(self, step, kernel, &made, error) : HEALCL_OK;
}
