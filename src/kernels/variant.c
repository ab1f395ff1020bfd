#include <string.h>

#include "kernels/kernels.h"
#include "kernels/launcher.h"

/* One family for each name in the table of steps. "none" has no variants. */
#define STEP(kind, id, reference, device, kernels, ...) extern const struct family family_##kernels;
#include "plan/steps.def"
#undef STEP

const struct family family_none = {.name = "none"};

const struct family *family_of(enum step_kind kind)
{
    static const struct family *const families[STEP_KINDS] = {
#define STEP(kind, id, reference, device, kernels, ...) [STEP_##kind] = &family_##kernels,
#include "plan/steps.def"
#undef STEP
    };
    return families[kind]->count > 0 ? families[kind] : NULL;
}

const struct family *family_at(size_t place)
{
    const struct family *last = NULL;
    for (int kind = 0; kind < STEP_KINDS; kind++) {
        const struct family *family = family_of((enum step_kind)kind);
        if (!family || family == last || kind == STEP_VENDOR) /* kinds of one family are adjacent */
            continue;
        last = family;
        if (place-- == 0)
            return family;
    }
    return NULL;
}

uint32_t style_tunables(enum kernel_family preference, enum kernel_style style, bool *any)
{
    uint32_t tunables = 0;
    const struct family *family;
    *any = false;
    for (size_t place = 0; (family = family_at(place)); place++)
        for (size_t i = 0; family->preference == preference && i < family->count; i++)
            if (family->variants[i].style == style) {
                tunables |= family->variants[i].tunables;
                *any = true;
            }
    return tunables;
}

/* The loops of work-items in these styles grow with sizes of the data. */
static bool is_fat(enum kernel_style style)
{
    return style == STYLE_VECTORS || style == STYLE_SINGLE;
}

static const char *obstacle_of(const struct family *family, const struct variant *variant,
                               const struct step *step, const struct healcl_device *device,
                               struct variant_plan *plan)
{
    if (variant->style != STYLE_GENERAL &&
        variant->style != device->tuning.styles[family->preference])
        return "the tuning selects another style";
    if (is_fat(variant->style) && device->info.loop_limit > 0)
        return "loops end early on this device";
    if (variant->style == STYLE_SINGLE && layout_elements(&step->out->layout) > INT32_MAX)
        return "there are too many elements";
    plan->launches = 1;
    return variant->plan(step, device, plan);
}

const char *variant_obstacle(const struct family *family, const struct variant *variant,
                             const struct step *step, const struct healcl_device *device)
{
    struct variant_plan ignored;
    return obstacle_of(family, variant, step, device, &ignored);
}

void plan_variant(const struct step *step, const struct healcl_device *device,
                  struct variant_plan *plan)
{
    const struct family *family = family_of(step->kind);
    plan->step = step;
    plan->variant = family->variants;
    while (obstacle_of(family, plan->variant, step, device, plan))
        plan->variant++; /* the last variant has no obstacle */
}

const struct variant *variant_for(const struct step *step, const struct healcl_device *device)
{
    struct variant_plan plan;
    plan_variant(step, device, &plan);
    return plan.variant;
}

/* ---------------------------------------------------------------- what a device lacks */

const char *step_obstacle(const struct step *step, const struct healcl_device *device)
{
    static const char forced[] = "HEALCL_LACKS names it";
    const struct family *family = family_of(step->kind);
    const bool has_own = step->kind != STEP_VENDOR; /* kernels that the self-test covers */
    if (has_own && device->info.failed_families >> family->preference & 1)
        return device->info.family_failure;
    if (!device->programs->forced_unsupported)
        return NULL;
    if (has_own && device_is_forced_off(device, kernel_family_name(family->preference)))
        return forced;
    for (size_t i = 0; i < step->origins->count; i++)
        if (device_is_forced_off(device, origin_operation(&step->origins->of[i])->name))
            return forced;
    return NULL;
}

static bool can_be_unsupported(const struct operation_table *table, const char *name, size_t length)
{
    bool found = length == 3 && strncmp(name, "all", length) == 0;
    const size_t count = operation_count(table);
    for (size_t i = 0; !found && i < count + FAMILY_COUNT; i++) {
        const char *known = i < count ? operation_at(table, i)->name
                                      : kernel_family_name((enum kernel_family)(i - count));
        found = strlen(known) == length && strncmp(name, known, length) == 0;
    }
    return found;
}

enum healcl_status unsupported_check(const struct healcl_device *device,
                                     const struct operation_table *table,
                                     struct healcl_error *error)
{
    size_t length = 0;
    for (const char *item = device->programs->forced_unsupported; item; item += length + 1) {
        length = strcspn(item, ",");
        if (!can_be_unsupported(table, item, length))
            FAIL(error, HEALCL_USAGE,
                 "HEALCL_LACKS names '%.*s', which is neither an operation (see healcl ops) nor a "
                 "family of kernels (see docs/KERNELS.md) nor all",
                 length < 80 ? (int)length : 80, item);
        if (item[length] == 0)
            break;
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- launches */

enum healcl_status choose_variant(struct launcher *self, const struct step *step,
                                  struct healcl_error *error)
{
    struct variant_plan plan;
    plan_variant(step, self->device, &plan);
    const struct family *family = family_of(step->kind);
    return (family->choose ? family->choose : plan.variant->choose)(self, &plan, error);
}

enum healcl_status launch_step(struct launcher *self, const struct step *step,
                               struct healcl_error *error)
{
    derived_limit(self);
    enum healcl_status status = template_launch(self, step, step, error);
    if (status == HEALCL_OK)
        launcher_storage_written(self, step->out->storage);
    return status;
}

enum { SMALL_RESULT_BYTES = 1 << 16 }; /* smaller copies are not worth a kernel: bytes are copied */

static bool packs_bytes(const struct tensor *tensor, uint64_t bytes)
{
    return bytes <= SMALL_RESULT_BYTES && layout_is_contiguous(&tensor->layout);
}

const char *pack_obstacle(const struct launcher *self, const struct step *step,
                          const struct tensor *tensor, uint64_t bytes)
{
    struct step copy = {.kind = STEP_COPY, .origins = step->origins};
    return bytes == 0 || packs_bytes(tensor, bytes) ? NULL : step_obstacle(&copy, self->device);
}

/* The packed elements are an output like any other. Their storage comes after those of the plan. */
enum healcl_status launch_pack(struct launcher *self, const struct step *step,
                               const struct tensor *tensor, const struct buffer *out,
                               struct healcl_error *error)
{
    const struct buffer *from;
    uint64_t size = dtype_size(tensor->storage->dtype);
    TRY(launcher_buffer(self, tensor->storage, &from, error));
    if (packs_bytes(tensor, out->bytes))
        return device_copy(self->device, from, (uint64_t)tensor->layout.offset * size, out, 0,
                           out->bytes, step->origins, error);
    struct storage packed = {.id = (uint32_t)self->plan->storage_count,
                             .dtype = tensor->storage->dtype,
                             .elements = layout_elements(&tensor->layout)};
    const struct tensor to = {.storage = &packed, .layout = layout_packed(&tensor->layout)};
    struct step copy = *step;
    copy.kind = STEP_COPY;
    copy.out = &to;
    copy.in[0] = tensor;
    *launcher_memory(self, &packed) = *out;
    enum healcl_status status = template_launch(self, step, &copy, error);
    *launcher_memory(self, &packed) = (struct buffer){0}; /* the caller owns it */
    return status;
}

/* ---------------------------------------------------------------- what families share */

const char *double_vectors_obstacle(const struct healcl_device *device)
{
    return device->info.double_width == 0 && device->tuning.multiply == MULTIPLY_BY_DOUBLES
               ? "the device has no doubles"
               : NULL;
}

struct space step_space(const struct step *step, int inputs)
{
    struct space space;
    space_init(&space, &step->out->layout);
    space_set_operand(&space, 0, &step->out->layout);
    for (int i = 0; i < inputs; i++)
        if (!is_scalar(step, i))
            space_set_operand(&space, (uint32_t)i + 1, &step->in[i]->layout);
    return space;
}

void job_begin(struct job *job, struct launcher *launcher, const struct step *step,
               const struct variant_plan *plan, int inputs)
{
    const struct variant *variant = plan->variant;
    job_init(job, launcher, step, variant->program, variant->kernel);
    job->launch.variant = variant;
    if (variant->tunables >> TUNABLE_multiply & 1)
        job_define_vectors(job);
    job->single = variant->style == STYLE_SINGLE;
    job_define_type(job, "ELEMENT", step->out->storage->dtype);
    job->space = plan->space;
    job_add_space(job);
    job_add_output(job, step->out);
    for (int i = 0; i < inputs; i++) /* a scalar needs a stand-in */
        job_add_input(job, is_scalar(step, i) ? step->out : step->in[i]);
}
