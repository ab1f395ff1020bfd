/* Runs one step: its kernel, or a substitute. Lists and compiles the kernels of a plan. */
#include <stdlib.h>

#include "kernels/derived.h"
#include "kernels/variant.h"
#include "run/audit.h"
#include "run/device_executor_parts.h"

/* Runs a release step. A session keeps some uploads: then nothing is released. */
static enum healcl_status device_executor_release(struct device_executor *self,
                                                  const struct step *step,
                                                  struct healcl_error *error)
{
    (void)error;
    if (!executor_has_kept(&self->base, step->in[0]->storage))
        device_executor_release_storage(self, step->in[0]->storage);
    return HEALCL_OK;
}

/* Runs a step after another kernel for it could not run, for a reason. That counts as one fallback,
 * unless the host then runs the step. reason: NULL if it is counted already. */
static enum healcl_status launch_again(struct device_executor *self, const struct step *step,
                                       const char *reason, struct healcl_error *error);

/* Whether other kernels can run a step whose vendor's kernel cannot be built. For an operation of a
 * vendor these are the steps of its body, if it has one: the step's side is then STEP_OF_KERNEL. A
 * kernel that replaces a built-in one has that one. */
static bool has_substitute(const struct device_executor *self, const struct step *step)
{
    const struct launcher *launcher = &self->launcher;
    return step->kind == STEP_VENDOR
               ? step->side == STEP_OF_KERNEL
               : vendor_kernel_for(launcher->plan, step, launcher->device).name != NULL;
}

/* Notes that a vendor's kernel could not be built, and runs the step otherwise: by another vendor's
 * kernel, or a built-in one. For a vendor's operation without another kernel there is nothing to
 * run here: the plan has the steps of its body next, and now does not leave them out. */
static enum healcl_status take_substitute(struct device_executor *self, const struct step *step,
                                          const char *reason, struct healcl_error *error)
{
    struct healcl_device *device = self->launcher.device;
    TRY(vendor_note_failed(self->launcher.plan, step, device, error));
    if (step->kind != STEP_VENDOR)
        return launch_again(self, step, reason, error);
    TRY(device_executor_note_fallback(self, step, reason, error));
    return vendor_has_kernel(step, device) ? launch_again(self, step, NULL, error) : HEALCL_OK;
}

/* Whether an error only means that the device cannot run something: it lacks a feature, or is too
 * small. The host can then run it. */
bool device_executor_is_lacking(const struct healcl_error *error)
{
    return error->cause == HEALCL_CAUSE_UNSUPPORTED || error->cause == HEALCL_CAUSE_LIMIT;
}

/* Ends a launch that returned `status` and *launch_error, which is moved or cleared. If the device
 * cannot run the step, a substitute does (take_substitute), or the host. reason: why another kernel
 * than planned has run, to be counted as a fallback; or NULL. */
static enum healcl_status end_launch(struct device_executor *self, const struct step *step,
                                     const char *reason, enum healcl_status status,
                                     struct healcl_error *launch_error, struct healcl_error *error)
{
    if (status == HEALCL_OK)
        return reason ? device_executor_note_fallback(self, step, reason, error) : HEALCL_OK;
    if (self->base.falls_back && device_executor_is_lacking(launch_error)) {
        self->launcher.refused_input = NO_INPUT;
        status = has_substitute(self, step)
                     ? take_substitute(self, step, launch_error->message, error)
                     : device_executor_run_on_host(self, step, launch_error->message, error);
    } else {
        error_move(error, launch_error);
    }
    healcl_error_clear(launch_error);
    return status;
}

/* Runs a step after another kernel for it could not run, for a reason. That counts as one fallback,
 * unless the host then runs the step. reason: NULL if it is counted already. */
static enum healcl_status launch_again(struct device_executor *self, const struct step *step,
                                       const char *reason, struct healcl_error *error)
{
    struct healcl_error launch_error = {.status = HEALCL_OK};
    const enum healcl_status status = launch_step(&self->launcher, step, step, &launch_error);
    return end_launch(self, step, reason, status, &launch_error, error);
}

#define NOT_BUILT "the manifest's kernel could not be built"

/* Whether a built-in kernel runs a step because a vendor's kernel for it could not be built. Each
 * such step counts as a fallback. */
static bool is_substitute(const struct device_executor *self, const struct step *step)
{
    const struct launcher *launcher = &self->launcher;
    return vendor_has_failed(launcher->plan, step, launcher->device) &&
           !vendor_kernel_for(launcher->plan, step, launcher->device).name;
}

/* Checks the data that a vendor's kernel relies on, such as moduli above 0, and waits for the
 * result: bad data may crash the kernel. A check that an earlier step has done is not launched
 * again. After a failure, what was derived from the data is forgotten. */
static enum healcl_status check_data(struct device_executor *self, const struct step *step,
                                     struct healcl_error *error)
{
    struct vendor_checked checked;
    for (uint32_t i = 0; vendor_check_at(self->launcher.plan, step, i, &checked); i++) {
        const size_t checks_before = self->launcher.check_count;
        const struct tensor *input = checked.step.in[checked.input];
        TRY(launch_check(&self->launcher, &checked.step, checked.input, error));
        if (self->launcher.check_count == checks_before)
            continue; /* checked already */
        const enum healcl_status status = device_executor_read_status(self, error);
        if (status != HEALCL_OK) {
            derived_forget(&self->launcher, &self->launcher.storages[input->storage->id]);
            return status;
        }
    }
    return HEALCL_OK;
}

/* Runs a step that has kernels. A step that fills a small new storage with zeros is an upload. For
 * others, waiting results are first moved out of the output. If the device cannot run the step, the
 * host does. Audits note what a step reads before it runs, and compare its output afterwards. */
static enum healcl_status device_executor_kernel(struct device_executor *self,
                                                 const struct step *step,
                                                 struct healcl_error *error)
{
    const char *obstacle = step_obstacle(step, self->launcher.device);
    if (!obstacle && device_executor_clears(self->launcher.device, step) &&
        !launcher_memory(&self->launcher, step->out->storage)->memory)
        return device_executor_clear(self, step->out->storage, error);
    TRY(device_executor_move_results(self, step->out->storage, error));
    (void)trace_for_step(self->base.trace, step);
    if (obstacle)
        return device_executor_run_on_host(self, step, obstacle, error);
    const uint64_t host_steps_before = self->base.host_steps;
    const bool is_audited = self->base.audit && audit_takes(self->base.audit, step);
    self->status_is_initial = false;
    if (is_audited)
        TRY(audit_before_step(self->base.audit, &self->launcher, error));
    if (self->launcher.plan->table)
        TRY(check_data(self, step, error));
    const enum healcl_status status = launch_step(&self->launcher, step, step, &self->launch_error);
    TRY(end_launch(self, step, is_substitute(self, step) ? NOT_BUILT : NULL, status,
                   &self->launch_error, error));
    const bool ran_on_device = self->base.host_steps == host_steps_before;
    return is_audited ? audit_after_step(self->base.audit, &self->launcher, ran_on_device, error)
                      : HEALCL_OK;
}

static enum healcl_status (*const step_functions[STEP_KINDS])(struct device_executor *,
                                                              const struct step *,
                                                              struct healcl_error *) = {
#define STEP(kind, id, reference, device, ...) [STEP_##kind] = device_executor_##device,
#include "plan/steps.def"
#undef STEP
};

/* Runs a step by the function of its kind, from the table in plan/steps.def. */
enum healcl_status device_executor_run_step(struct device_executor *self, const struct step *step,
                                            struct healcl_error *error)
{
    return step_functions[step->kind](self, step, error);
}

/* A vendor's operation is in the plan twice: as a kernel, and as the steps of its body. Skips a
 * step of the side that does not run. But it releases the copies of inputs that were made for a
 * kernel, which may have failed since. If a kernel could not be built, the call counts as a
 * fallback. */
enum healcl_status device_executor_leave_out(struct device_executor *self, const struct step *step,
                                             struct healcl_error *error)
{
    const struct healcl_device *device = self->launcher.device;
    if (step->kind == STEP_RELEASE && step->side == STEP_OF_KERNEL)
        device_executor_release_storage(self, step->in[0]->storage);
    if (step->kind == STEP_VENDOR && vendor_has_failed(self->launcher.plan, step, device))
        return device_executor_note_fallback(self, step, NOT_BUILT, error);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- before a run */

/* Whether the host computes tables from what a step uploads. */
static bool is_kept(const struct launcher *launcher, const struct step *step)
{
    return step->kind == STEP_UPLOAD && launcher_keeps_contents(launcher, step->out->storage);
}

/* Whether the host will know a small tensor's elements only in a run: version 0 has neither been
 * uploaded nor written. */
static bool is_unknown(const struct launcher *launcher, const struct tensor *tensor)
{
    return tensor && !tensor->storage->scalars &&
           launcher_keeps_contents(launcher, tensor->storage) &&
           launcher->storages[tensor->storage->id].version == 0;
}

/* Whether a step's kernels may depend on elements that are not known yet. Tables are derived from
 * all inputs but the first. */
static bool depends_on_unknown(const struct launcher *launcher, const struct step *step)
{
    for (int i = 1; i < STEP_INPUTS; i++)
        if (is_unknown(launcher, step->in[i]))
            return true;
    return false;
}

/* Prepares the kernels of a step, if it needs any: the launcher lists, binds or compiles them.
 * Errors are ignored, because the run reports them. A step that is not prepared counts as one that
 * writes its output: then later steps do not wait for its elements. */
static void prepare_step(struct launcher *launcher, const struct step *step)
{
    struct healcl_error error = {.status = HEALCL_OK};
    if (step_functions[step->kind] != device_executor_kernel ||
        step_is_left_out(step, launcher->device) || step_obstacle(step, launcher->device))
        return;
    if (device_executor_clears(launcher->device, step) ||
        (launcher_only_binds(launcher) && depends_on_unknown(launcher, step)))
        launcher_storage_written(launcher, step->out->storage);
    else
        (void)!launch_step(launcher, step, step, &error);
    healcl_error_clear(&error);
}

/* Gives the launcher the contents of an upload, so that tables have their right sizes. Errors are
 * ignored: they come again when the plan runs. */
static void keep_contents(struct launcher *launcher, const struct step *step)
{
    const struct storage *storage = step->out->storage;
    void *copy = malloc(storage_bytes(storage));
    if (copy && payload_check_data(step->payload, NULL) == HEALCL_OK &&
        source_check_size(launcher->plan->source, NULL) == HEALCL_OK &&
        payload_read_part(step->payload, storage->dtype, 0, storage->elements, copy, NULL) ==
            HEALCL_OK)
        launcher_storage_uploaded(launcher, storage, step->payload, copy);
    else
        free(copy);
}

/* Chooses the launches of all steps as in a run, and passes them to launcher->list instead of the
 * device. Uploads come first, so that tables have their right sizes. */
static void list_launches(struct launcher *launcher)
{
    const struct plan *plan = launcher->plan;
    for (size_t i = 0; i < plan->step_count; i++)
        if (is_kept(launcher, &plan->steps[i]))
            keep_contents(launcher, &plan->steps[i]);
    for (size_t i = 0; i < plan->step_count; i++)
        prepare_step(launcher, &plan->steps[i]);
}

/* Lists the programs of a plan for child processes to build. */
void device_executor_list_programs(const void *listed, struct healcl_device *device)
{
    const struct plan *plan = listed;
    struct launcher launcher;
    if (launcher_init(&launcher, device, plan, NULL) != HEALCL_OK)
        return;
    launcher.list = device_list_program;
    launcher.list_context = device;
    list_launches(&launcher);
    launcher_release(&launcher);
}

/* A launcher's `list`: builds the kernel of a launch. NULL: the run tries again, and reports why it
 * fails. */
static struct kernel *attach(void *context, const struct launch *launch)
{
    struct kernel *kernel;
    return device_attach(context, launch, &kernel, NULL) == HEALCL_OK ? kernel : NULL;
}

/* Chooses and builds the kernels of all steps, so that the first run only enqueues them, as later
 * runs do. Steps that depend on elements of a run's inputs are left to the first run. */
void device_executor_bind(struct executor *executor)
{
    struct launcher *launcher = device_executor_launcher(executor);
    struct healcl_device *device = launcher->device;
    device->programs->keeps_failures = executor->falls_back;
    launcher->templates.runs_again = true;
    launcher->list = attach;
    launcher->list_context = device;
    list_launches(launcher);
    launcher->list = NULL;
    derived_forget_listed(launcher);
    device->programs->manifest_is_wrong = false; /* the run finds that itself */
}

/* The first program of a plan, and whether a later launch uses another one. */
struct first_program {
    uint64_t hash; /* 0: there is none yet */
    bool differs;
};

/* Notes if launches use more than one program. */
static struct kernel *note_program(void *context, const struct launch *launch)
{
    struct first_program *first = context;
    const uint64_t hash = launch_program_hash(launch);
    first->hash = first->hash > 0 ? first->hash : hash;
    first->differs |= first->hash != hash;
    return NULL;
}

/* The number of the last step that uses another program than the plan's first launch does. The
 * number of steps if there is none. Nothing is compiled yet. */
static size_t last_step_of_other_program(struct launcher *launcher)
{
    const struct plan *plan = launcher->plan;
    struct first_program first = {.hash = 0};
    launcher->list = note_program;
    launcher->list_context = &first;
    for (size_t i = 0; i < plan->step_count && first.hash == 0; i++)
        prepare_step(launcher, &plan->steps[i]);
    size_t step = plan->step_count;
    first.differs = false; /* the first step alone may use several programs */
    while (step > 0 && !first.differs)
        prepare_step(launcher, &plan->steps[--step]);
    launcher->list = NULL;
    derived_forget_listed(launcher);
    return first.differs ? step : plan->step_count;
}

/* Compiles the plan's kernels while another process begins to run it. That process compiles from
 * the first step on, so this one compiles from the last step on. The other process is building the
 * plan's first program now: this one begins with a step of another program. */
void device_executor_compile_ahead(struct executor *executor)
{
    struct device_executor *self = (struct device_executor *)executor;
    struct launcher *launcher = &self->launcher;
    const struct plan *plan = launcher->plan;
    launcher->device->programs->keeps_failures = true;
    for (size_t i = 0; i < plan->step_count; i++)
        if (is_kept(launcher, &plan->steps[i]))
            (void)!device_executor_upload(self, &plan->steps[i], NULL);
    const size_t begin = last_step_of_other_program(launcher);
    launcher->device->programs->ahead.is_on = true;
    if (begin < plan->step_count)
        prepare_step(launcher, &plan->steps[begin]);
    for (size_t i = plan->step_count; i-- > 0;)
        prepare_step(launcher, &plan->steps[i]);
}
