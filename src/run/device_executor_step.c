/* Runs one step: its kernel, or a substitute. Lists and compiles the kernels of a plan. */
#include "kernels/derived.h"
#include "kernels/variant.h"
#include "run/audit.h"
#include "run/device_executor_parts.h"

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

/* Whether other kernels exist for a manifest's kernel that cannot be built: built-in ones, or those
 * of a body. */
static bool has_substitute(const struct device_executor *self, const struct step *step)
{
    const struct launcher *launcher = &self->launcher;
    return step->kind == STEP_VENDOR
               ? step->side == STEP_OF_KERNEL
               : vendor_kernel_for(launcher->plan, step, launcher->device).name != NULL;
}

/* Notes the failure. The steps of a body follow automatically, unless another kernel can run. */
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

bool device_executor_is_lacking(const struct healcl_error *error)
{
    return error->cause == HEALCL_CAUSE_UNSUPPORTED || error->cause == HEALCL_CAUSE_LIMIT;
}

/* Ends a launch with this status, and *own as its error: moved or cleared. Counts a fallback if
 * `reason` says why another kernel did not run. A substitute runs what the device cannot. */
static enum healcl_status end_launch(struct device_executor *self, const struct step *step,
                                     const char *reason, enum healcl_status status,
                                     struct healcl_error *own, struct healcl_error *error)
{
    if (status == HEALCL_OK)
        return reason ? device_executor_note_fallback(self, step, reason, error) : HEALCL_OK;
    if (self->base.falls_back && device_executor_is_lacking(own)) {
        self->launcher.refused_input = NO_INPUT;
        status = has_substitute(self, step)
                     ? take_substitute(self, step, own->message, error)
                     : device_executor_run_on_host(self, step, own->message, error);
    } else {
        error_move(error, own);
    }
    healcl_error_clear(own);
    return status;
}

static enum healcl_status launch_again(struct device_executor *self, const struct step *step,
                                       const char *reason, struct healcl_error *error)
{
    struct healcl_error own = {.status = HEALCL_OK};
    const enum healcl_status status = launch_step(&self->launcher, step, step, &own);
    return end_launch(self, step, reason, status, &own, error);
}

#define NOT_BUILT "the manifest's kernel could not be built"

/* Whether a built-in kernel runs a step because a manifest's kernel could not be built. */
static bool is_substitute(const struct device_executor *self, const struct step *step)
{
    const struct launcher *launcher = &self->launcher;
    return vendor_has_failed(launcher->plan, step, launcher->device) &&
           !vendor_kernel_for(launcher->plan, step, launcher->device).name;
}

/* Checks the conditions that a manifest's kernel assumes. Waits for the checks that it launches: a
 * modulus of 0 may crash the kernel. */
static enum healcl_status check_data(struct device_executor *self, const struct step *step,
                                     struct healcl_error *error)
{
    struct vendor_checked checked;
    for (uint32_t i = 0; vendor_check_at(self->launcher.plan, step, i, &checked); i++) {
        const size_t before = self->launcher.check_count;
        const struct tensor *input = checked.step.in[checked.input];
        TRY(launch_check(&self->launcher, &checked.step, checked.input, error));
        if (self->launcher.check_count == before)
            continue;
        const enum healcl_status status = device_executor_read_status(self, error);
        if (status != HEALCL_OK) {
            derived_forget(&self->launcher, &self->launcher.storages[input->storage->id]);
            return status;
        }
    }
    return HEALCL_OK;
}

static enum healcl_status device_executor_kernel(struct device_executor *self,
                                                 const struct step *step,
                                                 struct healcl_error *error)
{
    const char *obstacle = step_obstacle(step, self->launcher.device);
    if (!obstacle && device_executor_clears(self, step) &&
        !launcher_memory(&self->launcher, step->out->storage)->memory)
        return device_executor_clear(self, step->out->storage, error);
    TRY(device_executor_move_results(self, step->out->storage, error));
    (void)trace_for_step(self->base.trace, step);
    if (obstacle)
        return device_executor_run_on_host(self, step, obstacle, error);
    const uint64_t host_steps = self->base.host_steps;
    const bool is_audited = self->base.audit && audit_takes(self->base.audit, step);
    struct healcl_error own = {.status = HEALCL_OK};
    self->status_is_clear = false;
    if (is_audited)
        TRY(audit_before_step(self->base.audit, &self->launcher, error));
    if (self->launcher.plan->table)
        TRY(check_data(self, step, error));
    const enum healcl_status status = launch_step(&self->launcher, step, step, &own);
    TRY(end_launch(self, step, is_substitute(self, step) ? NOT_BUILT : NULL, status, &own, error));
    return is_audited ? audit_after_step(self->base.audit, &self->launcher,
                                         self->base.host_steps == host_steps, error)
                      : HEALCL_OK;
}

static enum healcl_status (*const step_functions[STEP_KINDS])(struct device_executor *,
                                                              const struct step *,
                                                              struct healcl_error *) = {
#define STEP(kind, id, reference, device, ...) [STEP_##kind] = device_executor_##device,
#include "plan/steps.def"
#undef STEP
};

enum healcl_status device_executor_run_step(struct device_executor *self, const struct step *step,
                                            struct healcl_error *error)
{
    return step_functions[step->kind](self, step, error);
}

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

/* ---------------------------------------------------------------- compiling ahead */

/* Uploads the data that the host keeps to compute tables from. These uploads use no kernel. */
static void upload_kept(struct device_executor *self)
{
    const struct plan *plan = self->launcher.plan;
    struct healcl_error error = {.status = HEALCL_OK};
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct step *step = &plan->steps[i];
        if (step->kind == STEP_UPLOAD &&
            launcher_keeps_contents(&self->launcher, step->out->storage))
            (void)!device_executor_upload(self, step, &error);
        healcl_error_clear(&error);
    }
}

/* Compiles a step's kernel. Returns whether the step has one. */
static bool compile_step(struct device_executor *self, const struct step *step)
{
    struct healcl_error error = {.status = HEALCL_OK};
    if (step_functions[step->kind] != device_executor_kernel ||
        device_executor_clears(self, step) || step_is_left_out(step, self->launcher.device) ||
        step_obstacle(step, self->launcher.device))
        return false;
    (void)!launch_step(&self->launcher, step, step, &error);
    healcl_error_clear(&error);
    return true;
}

static void list_program(void *beside, const struct launch *launch)
{
    device_list_program(beside, launch);
}

void device_executor_list_programs(const void *listed, struct healcl_device *beside)
{
    const struct plan *plan = listed;
    struct executor *executor = NULL;
    struct healcl_error error = {.status = HEALCL_OK};
    if (device_executor_create(beside, plan, false, &executor, NULL) != HEALCL_OK)
        return;
    struct device_executor *self = (struct device_executor *)executor;
    self->launcher.list = list_program;
    self->launcher.list_context = beside;
    upload_kept(self);
    for (size_t i = 0; i < plan->step_count; i++)
        if (!compile_step(self, &plan->steps[i]) && plan->steps[i].kind == STEP_RELEASE)
            (void)!device_executor_release(self, &plan->steps[i], &error);
    executor->class->destroy(executor);
}

/* The first program of a plan, and whether later launches use another one. */
struct first_program {
    uint64_t hash; /* 0: there is none yet */
    bool differs;
};

static void note_program(void *context, const struct launch *launch)
{
    struct first_program *first = context;
    const uint64_t hash = launch_program_hash(launch);
    first->hash = first->hash > 0 ? first->hash : hash;
    first->differs |= first->hash != hash;
}

/* The other process builds the first step's program now, so this process begins with another. */
void device_executor_compile_ahead(struct executor *executor)
{
    struct device_executor *self = (struct device_executor *)executor;
    struct launcher *launcher = &self->launcher;
    const struct plan *plan = launcher->plan;
    struct first_program first = {.hash = 0};
    launcher->device->programs->keeps_failures = true;
    upload_kept(self);
    launcher->list = note_program;
    launcher->list_context = &first;
    for (size_t i = 0; i < plan->step_count && first.hash == 0; i++)
        (void)compile_step(self, &plan->steps[i]);
    size_t begin = plan->step_count;
    for (first.differs = false; begin > 0 && !first.differs; begin--)
        (void)compile_step(self, &plan->steps[begin - 1]);
    launcher->list = NULL;
    derived_forget_all(launcher); /* the tables have no memory */
    launcher->device->programs->ahead.is_on = true;
    if (first.differs)
        (void)compile_step(self, &plan->steps[begin]);
    for (size_t i = plan->step_count; i-- > 0;)
        (void)compile_step(self, &plan->steps[i]);
}
