/* Kernels of vendors' manifests. */
#include "vendor/vendor.h"

#include <string.h>

#include "kernels/kernels.h"

bool vendor_is_for_device(const struct vendor_kernel *kernel, const struct device_info *info)
{
    if (kernel->type && strcmp(kernel->type, device_type_name(info->type)) != 0)
        return false;
    return !kernel->device || strstr(info->name, kernel->device) ||
           strstr(info->platform, kernel->device);
}

/* A kernel with one of its alternatives, and its launch for a step. */
struct pick {
    const struct vendor_kernel *kernel;
    const char *name; /* of the alternative */
    const struct vendor_launch *launch;
    uint32_t choice; /* vendor_choice */
    bool is_tuned;   /* the choice was tuned for the device */
};

/* ---------------------------------------------------------------- which kernel */

static void set_values(const struct step *step, struct expression_values *values)
{
    *values = (struct expression_values){
        .integers = {[VENDOR_INTEGERS] = step->value[0], [VENDOR_INTEGERS + 1] = step->value[1]}};
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step_operand(step, i);
        if (!tensor)
            continue;
        values->layouts[i] = &tensor->layout;
        values->dtypes[i] = tensor->storage->dtype;
    }
}

/* Whether passes have changed a step to a form that docs/VENDORS.md does not describe. */
static bool is_of_passes(const struct step *step)
{
    return (step->kind == STEP_INTT && step->in[5]) ||
           (step->kind == STEP_MODMUL_AXIS_SUM && step->in[1]->layout.rank != 3);
}

/* Kernels for a step, in the order of their manifests. Without a plan they belong to the step's
 * vendor operation, with a plan to its built-in kind. */
static const struct vendor_replacement *replacement_at(const struct plan *plan,
                                                       const struct step *step, uint32_t i)
{
    const struct vendor_operations *all = vendor_of_table(plan->table);
    const struct vendor_replacement *at = all ? all->replacements[step->kind] : NULL;
    for (; at && i > 0; i--)
        at = at->next;
    return at;
}

bool vendor_replaces(const struct plan *plan, const struct step *step)
{
    return plan->table && replacement_at(plan, step, 0);
}

/* NULL after the last one. */
static const struct vendor_kernel *kernel_at(const struct plan *plan, const struct step *step,
                                             uint32_t i)
{
    if (!plan)
        return i < step->vendor->operation->kernel_count ? step->vendor->operation->kernels[i]
                                                         : NULL;
    const struct vendor_replacement *replacement = replacement_at(plan, step, i);
    return replacement ? replacement->kernel : NULL;
}

/* NULL if the kernel is not for the device, or its alternative is not for the step. Then why has
 * the reason, which is HEALCL_REFUSED if an expression fails. made may hold the launch. */
static const struct vendor_launch *launch_of(const struct plan *plan, const struct step *step,
                                             const struct healcl_device *device, uint32_t choice,
                                             struct vendor_launch *made, struct healcl_error *why)
{
    const uint32_t i = choice / VENDOR_ALTERNATIVES_MAX;
    const uint32_t alternative = choice % VENDOR_ALTERNATIVES_MAX;
    const struct vendor_kernel *kernel = kernel_at(plan, step, i);
    const struct vendor_launch *launch = made;
    if (!kernel || alternative >= kernel->alternative_count)
        return NULL;
    const bool is_for_device = vendor_is_for_device(kernel, &device->info);
    if (!is_for_device || (plan && is_of_passes(step))) {
        (void)ERROR(why, HEALCL_DEVICE,
                    is_for_device ? "a pass has changed the step" : VENDOR_OF_OTHERS);
        return NULL;
    }
    if (plan) {
        struct expression_values values;
        set_values(step, &values);
        vendor_set_alternative(kernel, alternative, &values);
        if (vendor_launch_make(kernel, &values, made, why) != HEALCL_OK) {
            error_prefix(why, "%s: kernel '%s': ", kernel->manifest, kernel->kernel);
            return NULL;
        }
    } else {
        launch = alternative == 0 ? &step->vendor->launches[i]
                                  : vendor_launch_tuned(step->vendor, i, alternative);
    }
    if (launch->possible)
        return launch;
    (void)ERROR(why, HEALCL_DEVICE, "'%s' does not hold", expression_text(kernel->when));
    return NULL;
}

static bool pick(const struct plan *plan, const struct step *step,
                 const struct healcl_device *device, uint32_t choice, struct vendor_launch *made,
                 struct pick *picked, struct healcl_error *why)
{
    const struct vendor_kernel *kernel = kernel_at(plan, step, choice / VENDOR_ALTERNATIVES_MAX);
    if (!kernel || device_has_failed(device, kernel))
        return false;
    picked->launch = launch_of(plan, step, device, choice, made, why);
    if (!picked->launch)
        return false;
    picked->kernel = kernel;
    picked->choice = choice;
    picked->name = kernel->names[choice % VENDOR_ALTERNATIVES_MAX];
    return true;
}

/* Identifies the candidates for a step: see struct kernel_choices. */
static uint64_t identity_of(const struct plan *plan, const struct step *step)
{
    return plan ? vendor_of_table(plan->table)->replacement_identities[step->kind]
                : step->vendor->operation->identity;
}

/* The kernel chosen for the device if it can run the step, or else the first one that can. The
 * kernel is NULL if none can. If an expression fails, the step is refused: then refused is
 * HEALCL_REFUSED. */
static struct pick pick_for(const struct plan *plan, const struct step *step,
                            const struct healcl_device *device, struct vendor_launch *made,
                            struct healcl_error *refused)
{
    struct pick picked = {.kernel = NULL};
    struct healcl_error why = {.status = HEALCL_OK};
    if (plan ? !replacement_at(plan, step, 0)
             : device_is_forced_off(device, step->vendor->operation->name))
        return picked;
    const uint32_t choice =
        kernel_choices_find(&device->programs->choices, identity_of(plan, step));
    if (choice > 0)
        picked.is_tuned = pick(plan, step, device, choice, made, &picked, &why);
    for (uint32_t i = 0; !picked.kernel && why.status != HEALCL_REFUSED && kernel_at(plan, step, i);
         i++) {
        healcl_error_clear(&why);
        (void)pick(plan, step, device, vendor_choice(i, 0), made, &picked, &why);
    }
    if (!picked.kernel && why.status == HEALCL_REFUSED)
        error_move(refused, &why);
    healcl_error_clear(&why);
    return picked;
}

bool vendor_has_kernel(const struct step *step, const struct healcl_device *device)
{
    return pick_for(NULL, step, device, NULL, NULL).kernel != NULL;
}

bool vendor_runs_again(const struct step *step, const struct healcl_device *device)
{
    const struct pick picked = pick_for(NULL, step, device, NULL, NULL);
    return picked.kernel && *step->vendor->ran == picked.choice + 1;
}

bool step_is_left_out(const struct step *step, const struct healcl_device *device)
{
    if (step->side == STEP_ALWAYS)
        return false;
    return (device && vendor_has_kernel(step, device)) != (step->side == STEP_OF_KERNEL);
}

/* The kernel's name in traces and reports. */
static struct manifest_kernel manifest_kernel_of(const struct step *step, const struct pick *picked)
{
    if (!picked->kernel)
        return (struct manifest_kernel){.name = NULL};
    return (struct manifest_kernel){
        .name = picked->name,
        .file = picked->kernel->manifest,
        .replaces = step->kind == STEP_VENDOR ? NULL : step_traits[step->kind].name,
        .is_tuned = picked->is_tuned};
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

static enum healcl_status launch_native(struct launcher *self, const struct step *step,
                                        const struct pick *picked, struct healcl_error *error)
{
    const struct vendor_kernel *kernel = picked->kernel;
    const struct vendor_launch *launch = picked->launch;
    const struct manifest_kernel manifest = manifest_kernel_of(step, picked);
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
        const struct tensor *tensor = step_operand(step, number);
        TRY(launcher_buffer(self, tensor->storage, &buffer, error));
        native.tensors[i] = (struct healcl_vendor_tensor){
            .memory = buffer->memory,
            .element_bytes = (uint32_t)dtype_size(tensor->storage->dtype),
            .rank = tensor->layout.rank,
            .offset = tensor->layout.offset,
            .shape = tensor->layout.shape,
            .stride = tensor->layout.stride};
        native.arguments[i].tensor = &native.tensors[i];
    }
    /* Its commands are not visible: the span covers the call. */
    const size_t span = trace_begin(device->trace, "native", kernel->kernel);
    trace_manifest_kernel(device->trace, span, &manifest);
    enum healcl_status status = device_call(device, call_native, &native, error);
    trace_end(device->trace, span);
    return status;
}

/* ---------------------------------------------------------------- launches */

static enum healcl_status choose_picked(struct launcher *self, const struct step *step,
                                        const struct pick *picked, struct healcl_error *error)
{
    const struct vendor_kernel *kernel = picked->kernel;
    const struct vendor_launch *launch = picked->launch;
    self->templates.made->is_done = kernel->native != NULL;
    if (kernel->native && self->list)
        return HEALCL_OK;
    if (kernel->native)
        return launch_native(self, step, picked, error);
    struct job job;
    job_init(&job, self, step, kernel->program, kernel->kernel);
    job.launch.source = kernel->source;
    job.launch.manifest = manifest_kernel_of(step, picked);
    strcpy(job.options, launch->options);
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const int number = launch->arguments[i].tensor;
        struct launch_argument *argument = &job.launch.arguments[i];
        if (number == NO_INPUT) {
            job_add_long(&job, launch->arguments[i].value);
        } else {
            const struct tensor *tensor = step_operand(step, number);
            if (number == VENDOR_OUT)
                job_add_output(&job, tensor);
            else
                job_add_input(&job, tensor);
            argument->size = dtype_size(tensor->storage->dtype);
        }
        argument->name = launch->arguments[i].name;
    }
    job.launch.groups = launch->groups;
    job.launch.local_size = launch->local;
    return job_add_to_template(&job, error);
}

/* ---------------------------------------------------------------- operations */

static enum healcl_status choose_operation(struct launcher *self, const struct variant_plan *plan,
                                           struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct pick picked = pick_for(NULL, step, self->device, NULL, NULL);
    if (!picked.kernel)
        REFUSE_FOR(error, OPERATION, "it has neither a kernel for %s nor a body",
                   self->device->info.name);
    TRY(choose_picked(self, step, &picked, error));
    if (step->vendor->ran)
        *step->vendor->ran = picked.choice + 1;
    return HEALCL_OK;
}

static const char *plan_operation(const struct step *step, const struct healcl_device *device,
                                  struct variant_plan *plan)
{
    (void)step, (void)device, (void)plan;
    return NULL;
}

static const struct variant variants[] = {
    {"a manifest's", STYLE_GENERAL, plan_operation, choose_operation, 0, "", NULL, "a vendor's",
     "always"},
};

const struct family family_vendor = FAMILY_OF(vendor, elementwise, variants);

/* ---------------------------------------------------------------- built-in kinds of steps */

/* The plan whose manifests have kernels for a step's kind. NULL: they belong to its vendor
 * operation. */
static const struct plan *plan_of_kind(const struct plan *plan, const struct step *step)
{
    return step->kind == STEP_VENDOR ? NULL : plan;
}

struct manifest_kernel vendor_kernel_for(const struct plan *plan, const struct step *step,
                                         const struct healcl_device *device)
{
    struct vendor_launch made;
    const struct pick picked = pick_for(plan_of_kind(plan, step), step, device, &made, NULL);
    return manifest_kernel_of(step, &picked);
}

enum healcl_status vendor_note_failed(const struct plan *plan, const struct step *step,
                                      struct healcl_device *device, struct healcl_error *error)
{
    struct vendor_launch made;
    return device_note_failed(
        device, pick_for(plan_of_kind(plan, step), step, device, &made, NULL).kernel, error);
}

bool vendor_has_failed(const struct plan *plan, const struct step *step,
                       const struct healcl_device *device)
{
    const struct vendor_kernel *kernel;
    struct vendor_launch made;
    if (device->programs->failed_count == 0)
        return false;
    plan = plan_of_kind(plan, step);
    for (uint32_t i = 0; (kernel = kernel_at(plan, step, i)); i++)
        if (device_has_failed(device, kernel) &&
            (!plan || launch_of(plan, step, device, vendor_choice(i, 0), &made, NULL)))
            return true;
    return false;
}

bool vendor_check_at(const struct plan *plan, const struct step *step, uint32_t i,
                     struct vendor_checked *checked)
{
    if (step->kind != STEP_VENDOR) {
        if (i >= STEP_INPUTS || !replacement_at(plan, step, 0))
            return false;
        checked->step = *step;
        checked->input = (int)i;
        return true;
    }
    const struct vendor_check *check = step->vendor->checks;
    for (; check && i > 0; i--)
        check = check->next;
    if (!check)
        return false;
    *checked = (struct vendor_checked){check->step, check->input, *check->step.in[check->input]};
    checked->step.in[check->input] = &checked->tensor;
    if (step->vendor->ran) { /* it was planned for another call */
        checked->tensor.storage = step->in[check->of]->storage;
        checked->step.arguments[check->input] = step->arguments[check->of];
        checked->step.origins = step->origins;
    }
    return true;
}

enum healcl_status choose_replacement(struct launcher *self, const struct step *step,
                                      bool *is_chosen, struct healcl_error *error)
{
    struct vendor_launch made;
    struct healcl_error refused = {.status = HEALCL_OK};
    const struct pick picked = pick_for(self->plan, step, self->device, &made, &refused);
    *is_chosen = picked.kernel != NULL;
    if (*is_chosen)
        return choose_picked(self, step, &picked, error);
    const enum healcl_status status = refused.status;
    self->device->programs->manifest_is_wrong |= status != HEALCL_OK;
    if (status != HEALCL_OK)
        error_move(error, &refused);
    return status;
}

void vendor_take_turn(const struct plan *plan, const struct step *step,
                      struct healcl_device *device, uint32_t turn)
{
    struct vendor_launch made;
    plan = plan_of_kind(plan, step);
    const struct pick picked = pick_for(plan, step, device, &made, NULL);
    if (picked.kernel)
        kernel_choices_set(&device->programs->choices, identity_of(plan, step),
                           vendor_choice(picked.choice / VENDOR_ALTERNATIVES_MAX,
                                         turn % picked.kernel->alternative_count));
}

const struct vendor_kernel *vendor_kernel_at(const struct plan *plan, const struct step *step,
                                             const struct healcl_device *device, uint32_t i,
                                             struct healcl_error *why)
{
    struct vendor_launch made;
    plan = plan_of_kind(plan, step);
    const struct vendor_kernel *kernel = kernel_at(plan, step, i);
    if (!kernel || pick_for(plan, step, device, &made, NULL).kernel == kernel ||
        !launch_of(plan, step, device, vendor_choice(i, 0), &made, why))
        return kernel;
    (void)ERROR(why, HEALCL_DEVICE, "%s",
                device_has_failed(device, kernel) ? "it could not be built"
                                                  : "another kernel of manifests runs the step");
    return kernel;
}
