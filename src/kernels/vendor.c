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

/*
 * Manifests give kernels for a step in one of two ways. A vendor's operation, STEP_VENDOR, has its
 * own kernels, in step->vendor. A built-in kind of step has replacements in the plan's manifests. A
 * kernel may have several alternatives, launches with other sizes. A choice is one number for a
 * kernel's index and its alternative: vendor_choice.
 */

/* The chosen kernel with one of its alternatives, and its launch for a step. */
struct pick {
    const struct vendor_kernel *kernel;
    const struct vendor_launch *launch;
    uint32_t choice; /* vendor_choice */
    bool is_tuned;   /* the choice was tuned for the device */
};

static uint32_t kernel_index(uint32_t choice)
{
    return choice / VENDOR_ALTERNATIVES_MAX;
}

static uint32_t alternative_index(uint32_t choice)
{
    return choice % VENDOR_ALTERNATIVES_MAX;
}

/* ---------------------------------------------------------------- which kernel */

/* Sets what expressions of manifests may use: operands' shapes and dtypes, and the step's integers.
 */
static void set_values(const struct step *step, struct expression_values *values)
{
    *values = (struct expression_values){
        .integers = {[VENDOR_INTEGERS] = step->value[0], [VENDOR_INTEGERS + 1] = step->value[1]}};
    for (int i = 0; i < STEP_OPERANDS; i++) {
        const struct tensor *tensor = step->operands[i];
        if (!tensor)
            continue;
        values->layouts[i] = &tensor->layout;
        values->dtypes[i] = tensor->storage->dtype;
    }
}

/* Whether passes have changed a built-in step to a form that docs/VENDORS.md does not describe. */
static bool is_of_passes(const struct step *step)
{
    switch (step->kind) {
    case STEP_NTT:
    case STEP_INTT: return step->in[FACTORS] != NULL;
    case STEP_MODMUL_AXIS_SUM: return step->in[INPUT_B]->layout.rank != 3; /* b also has reps */
    default: return false;
    }
}

/* Replacement i of a built-in kind of step, in the order of manifests. NULL after the last one. */
static const struct vendor_replacement *replacement_at(const struct plan *plan,
                                                       const struct step *step, uint32_t i)
{
    const struct vendor_operations *all = vendor_of_table(plan->table);
    const struct vendor_replacement *replacement = all ? all->replacements[step->kind] : NULL;
    for (; replacement && i > 0; i--)
        replacement = replacement->next;
    return replacement;
}

bool vendor_replaces(const struct plan *plan, const struct step *step)
{
    return plan->table && replacement_at(plan, step, 0);
}

/* Kernel i that a step may use, in the order of manifests. NULL after the last one. */
static const struct vendor_kernel *kernel_at(const struct plan *plan, const struct step *step,
                                             uint32_t i)
{
    if (step->kind == STEP_VENDOR) {
        const struct vendor_operation *operation = step->vendor->operation;
        return i < operation->kernel_count ? operation->kernels[i] : NULL;
    }
    const struct vendor_replacement *replacement = replacement_at(plan, step, i);
    return replacement ? replacement->kernel : NULL;
}

/* Makes the launch of a replacement's alternative for a step, in *launch. Returns whether it could:
 * if not, an expression failed, as why tells. */
static bool make_replacement_launch(const struct step *step, const struct vendor_kernel *kernel,
                                    uint32_t alternative, struct vendor_launch *launch,
                                    struct healcl_error *why)
{
    struct expression_values values;
    set_values(step, &values);
    vendor_set_alternative(kernel, alternative, &values);
    if (vendor_launch_make(kernel, &values, launch, why) == HEALCL_OK)
        return true;
    error_prefix(why, "%s: kernel '%s': ", kernel->manifest, kernel->kernel);
    return false;
}

/* The launch of a choice for a step. NULL: the kernel is not for the device, or its alternative not
 * for the step. Then why has the reason, which is HEALCL_REFUSED if an expression fails. A vendor's
 * operation was planned with its launches. A replacement's launch is made here, in *memory. */
static const struct vendor_launch *launch_of(const struct plan *plan, const struct step *step,
                                             const struct healcl_device *device, uint32_t choice,
                                             struct vendor_launch *memory, struct healcl_error *why)
{
    const uint32_t i = kernel_index(choice), alternative = alternative_index(choice);
    const struct vendor_kernel *kernel = kernel_at(plan, step, i);
    const struct vendor_launch *launch = memory;
    if (!kernel || alternative >= kernel->alternative_count)
        return NULL;
    const char *obstacle = NULL;
    if (!vendor_is_for_device(kernel, &device->info))
        obstacle = VENDOR_OF_OTHERS;
    else if (is_of_passes(step))
        obstacle = "a pass has changed the step";
    if (obstacle) {
        (void)ERROR(why, HEALCL_DEVICE, "%s", obstacle);
        return NULL;
    }
    if (step->kind != STEP_VENDOR) {
        if (!make_replacement_launch(step, kernel, alternative, memory, why))
            return NULL;
    } else if (alternative == 0) {
        launch = &step->vendor->launches[i];
    } else {
        launch = vendor_launch_tuned(step->vendor, i, alternative);
    }
    if (launch->possible)
        return launch;
    (void)ERROR(why, HEALCL_DEVICE, "'%s' does not hold", expression_text(kernel->when));
    return NULL;
}

/* Sets *picked to a choice if its kernel can run the step. Returns whether it can; if not, why: see
 * launch_of. */
static bool try_choice(const struct plan *plan, const struct step *step,
                       const struct healcl_device *device, uint32_t choice,
                       struct vendor_launch *memory, struct pick *picked, struct healcl_error *why)
{
    const struct vendor_kernel *kernel = kernel_at(plan, step, kernel_index(choice));
    if (!kernel || device_has_failed(device, kernel))
        return false;
    const struct vendor_launch *launch = launch_of(plan, step, device, choice, memory, why);
    if (launch)
        *picked = (struct pick){.kernel = kernel, .launch = launch, .choice = choice};
    return launch != NULL;
}

/* Identifies the candidates for a step: see struct kernel_choices. */
static uint64_t identity_of(const struct plan *plan, const struct step *step)
{
    return step->kind == STEP_VENDOR
               ? step->vendor->operation->identity
               : vendor_of_table(plan->table)->replacement_identities[step->kind];
}

/* Whether a manifest's kernels must not run a step, or none exist for it. */
static bool lacks_kernels(const struct plan *plan, const struct step *step,
                          const struct healcl_device *device)
{
    if (step->kind == STEP_VENDOR)
        return device_is_forced_off(device, step->vendor->operation->name);
    return !replacement_at(plan, step, 0);
}

/* The kernel chosen for the device if it can run the step, or else the first one that can. The
 * kernel is NULL if none can. If an expression fails, the step is refused: then refused is
 * HEALCL_REFUSED. memory: for the launch of a replacement. */
static struct pick pick_for(const struct plan *plan, const struct step *step,
                            const struct healcl_device *device, struct vendor_launch *memory,
                            struct healcl_error *refused)
{
    struct pick picked = {.kernel = NULL};
    struct healcl_error why = {.status = HEALCL_OK};
    if (lacks_kernels(plan, step, device))
        return picked;
    const uint32_t tuned = kernel_choices_find(&device->programs->choices, identity_of(plan, step));
    if (tuned > 0)
        picked.is_tuned = try_choice(plan, step, device, tuned, memory, &picked, &why);
    for (uint32_t i = 0; !picked.kernel && why.status != HEALCL_REFUSED && kernel_at(plan, step, i);
         i++) {
        healcl_error_clear(&why);
        (void)try_choice(plan, step, device, vendor_choice(i, 0), memory, &picked, &why);
    }
    if (!picked.kernel && why.status == HEALCL_REFUSED)
        error_move(refused, &why);
    healcl_error_clear(&why);
    return picked;
}

/* As pick_for, for the call of a vendor's operation that a step belongs to: perhaps one of its
 * body.
 */
static struct pick pick_for_call(const struct step *step, const struct healcl_device *device)
{
    const struct step call = {.kind = STEP_VENDOR, .vendor = step->vendor};
    return pick_for(NULL, &call, device, NULL, NULL);
}

bool vendor_has_kernel(const struct step *step, const struct healcl_device *device)
{
    return pick_for_call(step, device).kernel != NULL;
}

bool vendor_runs_again(const struct step *step, const struct healcl_device *device)
{
    const struct pick picked = pick_for_call(step, device);
    return picked.kernel && *step->vendor->ran == picked.choice + 1; /* 0: none has run */
}

/* A vendor's operation with a kernel and a body is planned twice: steps of one side are left out.
 */
bool step_is_left_out(const struct step *step, const struct healcl_device *device)
{
    if (step->side == STEP_ALWAYS)
        return false;
    const bool runs_kernel = device && vendor_has_kernel(step, device);
    const bool is_of_kernel = step->side == STEP_OF_KERNEL;
    return runs_kernel != is_of_kernel;
}

/* The kernel's name in traces and reports. */
static struct manifest_kernel manifest_kernel_of(const struct step *step, const struct pick *picked)
{
    if (!picked->kernel)
        return (struct manifest_kernel){.name = NULL};
    return (struct manifest_kernel){
        .name = picked->kernel->names[alternative_index(picked->choice)],
        .file = picked->kernel->manifest,
        .replaces = step->kind == STEP_VENDOR ? NULL : step_traits[step->kind].name,
        .is_tuned = picked->is_tuned};
}

/* ---------------------------------------------------------------- native code */

/* A call of a manifest's C function, which enqueues its own commands. */
struct native_call {
    const struct vendor_kernel *kernel;
    struct healcl_vendor_call call;
    struct healcl_vendor_argument arguments[VENDOR_ARGUMENTS_MAX];
    struct healcl_vendor_tensor tensors[VENDOR_ARGUMENTS_MAX];
};

/* Calls the function. It may have written a message for its error code. */
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

/* Sets the arguments of a call: integers, and tensors with their OpenCL memory. */
static enum healcl_status set_native_arguments(struct launcher *self, const struct step *step,
                                               const struct vendor_launch *launch,
                                               struct native_call *native,
                                               struct healcl_error *error)
{
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const int number = launch->arguments[i].tensor;
        const struct buffer *buffer;
        native->arguments[i].integer = launch->arguments[i].value;
        if (number == NO_INPUT)
            continue;
        const struct tensor *tensor = step->operands[number];
        TRY(launcher_buffer(self, tensor->storage, &buffer, error));
        native->tensors[i] = (struct healcl_vendor_tensor){
            .memory = buffer->memory,
            .element_bytes = (uint32_t)dtype_size(tensor->storage->dtype),
            .rank = tensor->layout.rank,
            .offset = tensor->layout.offset,
            .shape = tensor->layout.shape,
            .stride = tensor->layout.stride};
        native->arguments[i].tensor = &native->tensors[i];
    }
    return HEALCL_OK;
}

/* Calls native code. Its commands are not visible: a span of the trace covers the call. */
static enum healcl_status launch_native(struct launcher *self, const struct step *step,
                                        const struct pick *picked, struct healcl_error *error)
{
    struct healcl_device *device = self->device;
    const struct manifest_kernel manifest = manifest_kernel_of(step, picked);
    struct native_call native = {.kernel = picked->kernel,
                                 .call = {.version = HEALCL_VENDOR_VERSION,
                                          .context = device->context,
                                          .device = device->info.device_id,
                                          .queue = device->compute,
                                          .argument_count = picked->launch->argument_count}};
    native.call.arguments = native.arguments;
    TRY(set_native_arguments(self, step, picked->launch, &native, error));
    const size_t span = trace_begin(device->trace, "native", picked->kernel->kernel);
    trace_manifest_kernel(device->trace, span, &manifest);
    const enum healcl_status status = device_call(device, call_native, &native, error);
    trace_end(device->trace, span);
    return status;
}

/* ---------------------------------------------------------------- launches */

/* Adds the kernel's arguments, as its manifest lists them: integers, and memory of tensors, whose
 * numbers are their slots. */
static void add_arguments(struct job *job, const struct step *step,
                          const struct vendor_launch *launch)
{
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const int number = launch->arguments[i].tensor;
        if (number == NO_INPUT)
            job_add_long(job, launch->arguments[i].value);
        else if (number == VENDOR_OUT)
            job_add_written(job, number);
        else
            job_add_buffer(job, number);
        if (number != NO_INPUT)
            job->launch.arguments[i].size = dtype_size(step->operands[number]->storage->dtype);
        job->launch.arguments[i].name = launch->arguments[i].name;
    }
}

/* Adds the launch of the picked kernel to the template that is being made. Native code cannot be
 * described by a launch: it runs at once, unless launches are only listed. */
static enum healcl_status choose_picked(struct launcher *self, const struct step *step,
                                        const struct pick *picked, struct healcl_error *error)
{
    const struct vendor_kernel *kernel = picked->kernel;
    const bool is_native = kernel->native != NULL;
    self->templates.current->is_done = is_native;
    if (is_native)
        return self->list ? HEALCL_OK : launch_native(self, step, picked, error);
    struct job job;
    job_init(&job, self, step, kernel->program, kernel->kernel);
    job.launch.source = kernel->source;
    job.launch.manifest = manifest_kernel_of(step, picked);
    strcpy(job.options, picked->launch->options);
    add_arguments(&job, step, picked->launch);
    job.launch.groups = picked->launch->groups;
    job.launch.local_size = picked->launch->local;
    return job_add_to_template(&job, error);
}

/* ---------------------------------------------------------------- operations */

/* Adds the launch of the kernel that runs a vendor's operation on this device. Notes the choice
 * for cached calls. */
static enum healcl_status choose_operation(struct launcher *self, const struct variant_plan *plan,
                                           struct healcl_error *error)
{
    const struct step *step = plan->step;
    const struct pick picked = pick_for_call(step, self->device);
    if (!picked.kernel)
        REFUSE_FOR(error, OPERATION, "it has neither a kernel for %s nor a body",
                   self->device->info.name);
    TRY(choose_picked(self, step, &picked, error));
    if (step->vendor->ran) /* for vendor_runs_again */
        *step->vendor->ran = picked.choice + 1;
    return HEALCL_OK;
}

static const char *plan_operation(struct variant_plan *plan)
{
    (void)plan;
    return NULL;
}

static const struct variant variants[] = {
    {"a manifest's", STYLE_GENERAL, plan_operation, choose_operation, 0, "", NULL, "a vendor's",
     "always"},
};

const struct family family_vendor = FAMILY_OF(vendor, elementwise, variants);

/* ---------------------------------------------------------------- built-in kinds of steps */

struct manifest_kernel vendor_kernel_for(const struct plan *plan, const struct step *step,
                                         const struct healcl_device *device)
{
    struct vendor_launch memory;
    const struct pick picked = pick_for(plan, step, device, &memory, NULL);
    return manifest_kernel_of(step, &picked);
}

enum healcl_status vendor_note_failed(const struct plan *plan, const struct step *step,
                                      struct healcl_device *device, struct healcl_error *error)
{
    struct vendor_launch memory;
    const struct pick picked = pick_for(plan, step, device, &memory, NULL);
    return device_note_failed(device, picked.kernel, error);
}

/* Whether a kernel that could run the step was tried, and could not be built. */
bool vendor_has_failed(const struct plan *plan, const struct step *step,
                       const struct healcl_device *device)
{
    struct vendor_launch memory;
    const struct vendor_kernel *kernel;
    if (device->programs->failed_count == 0)
        return false;
    for (uint32_t i = 0; (kernel = kernel_at(plan, step, i)); i++) {
        if (!device_has_failed(device, kernel))
            continue;
        if (step->kind == STEP_VENDOR ||
            launch_of(plan, step, device, vendor_choice(i, 0), &memory, NULL))
            return true;
    }
    return false;
}

/* A replaced built-in step has the checks of all its inputs. A vendor's operation has those that
 * its body makes. A cached call keeps the checks of the call for which it was planned: they then
 * refer to that call's tensors, in place of which come the tensors of this one. */
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
    if (step->vendor->ran) { /* a cached call */
        checked->tensor.storage = step->in[check->of]->storage;
        checked->step.arguments[check->input] = step->arguments[check->of];
        checked->step.origins = step->origins;
    }
    return true;
}

/* Adds the launch of a manifest's kernel that replaces a built-in step, if there is one. An
 * expression without a value is the manifest's mistake, which is noted. */
enum healcl_status choose_replacement(struct launcher *self, const struct step *step,
                                      bool *is_chosen, struct healcl_error *error)
{
    struct vendor_launch memory;
    struct healcl_error refused = {.status = HEALCL_OK};
    const struct pick picked = pick_for(self->plan, step, self->device, &memory, &refused);
    *is_chosen = picked.kernel != NULL;
    if (*is_chosen)
        return choose_picked(self, step, &picked, error);
    const enum healcl_status status = refused.status;
    self->device->programs->manifest_is_wrong |= status != HEALCL_OK;
    if (status != HEALCL_OK)
        error_move(error, &refused);
    return status;
}

/* Chooses an alternative of the step's kernel, for a measurement. Turns go round all
 * alternatives. */
void vendor_take_turn(const struct plan *plan, const struct step *step,
                      struct healcl_device *device, uint32_t turn)
{
    struct vendor_launch memory;
    const struct pick picked = pick_for(plan, step, device, &memory, NULL);
    if (!picked.kernel)
        return;
    const uint32_t alternative = turn % picked.kernel->alternative_count;
    kernel_choices_set(&device->programs->choices, identity_of(plan, step),
                       vendor_choice(kernel_index(picked.choice), alternative));
}

/* Kernel i that the step may use. why: the reason if it does not run the step, such as another
 * kernel that comes first. */
const struct vendor_kernel *vendor_kernel_at(const struct plan *plan, const struct step *step,
                                             const struct healcl_device *device, uint32_t i,
                                             struct healcl_error *why)
{
    struct vendor_launch memory;
    const struct vendor_kernel *kernel = kernel_at(plan, step, i);
    if (!kernel)
        return NULL;
    const bool runs_step = pick_for(plan, step, device, &memory, NULL).kernel == kernel;
    const bool could_run =
        runs_step || launch_of(plan, step, device, vendor_choice(i, 0), &memory, why);
    if (could_run && !runs_step)
        (void)ERROR(why, HEALCL_DEVICE, "%s",
                    device_has_failed(device, kernel)
                        ? "it could not be built"
                        : "another kernel of manifests runs the step");
    return kernel;
}
