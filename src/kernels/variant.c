#include <string.h>

#include "kernels/kernels.h"
#include "kernels/launcher.h"

/* One family for each name in the table of steps. "none" has no variants. */
#define STEP(kind, id, reference, device, kernels, ...) extern const struct family family_##kernels;
#include "plan/steps.def"
#undef STEP

const struct family family_none = {.name = "none"};

/* The kernels of a kind of step; NULL if it has none, such as an upload. */
const struct family *family_of(enum step_kind kind)
{
    static const struct family *const families[STEP_KINDS] = {
#define STEP(kind, id, reference, device, kernels, ...) [STEP_##kind] = &family_##kernels,
#include "plan/steps.def"
#undef STEP
    };
    return families[kind]->count > 0 ? families[kind] : NULL;
}

/* Counts families in the order of the kinds of steps. Kinds of one family are adjacent there. */
const struct family *family_at(size_t index)
{
    const struct family *last = NULL;
    for (int kind = 0; kind < STEP_KINDS; kind++) {
        const struct family *family = family_of((enum step_kind)kind);
        if (!family || family == last || kind == STEP_VENDOR)
            continue;
        last = family;
        if (index-- == 0)
            return family;
    }
    return NULL;
}

/* The tunables that matter for a style of kernels, in all families that the tuning's entry
 * `preference` sets. *any: whether such a variant exists. */
uint32_t style_tunables(enum kernel_family preference, enum kernel_style style, bool *any)
{
    uint32_t tunables = 0;
    const struct family *family;
    *any = false;
    for (size_t index = 0; (family = family_at(index)); index++) {
        if (family->preference != preference)
            continue;
        for (size_t i = 0; i < family->count; i++)
            if (family->variants[i].style == style) {
                tunables |= family->variants[i].tunables;
                *any = true;
            }
    }
    return tunables;
}

/* Whether loops of work-items grow with sizes of the data. Devices that end loops early cannot run
 * such variants. */
static bool has_long_loops(enum kernel_style style)
{
    return style == STYLE_VECTORS || style == STYLE_SINGLE;
}

/* Whether a chain follows the launches of a transform. A pass may have given a forward transform an
 * addend and factors: out = factors * NTT(a) + addend. Only some variants' kernels add it. */
static bool needs_chain(const struct variant_plan *plan)
{
    const struct step *step = plan->step;
    return step->kind == STEP_NTT && step->in[STEP_ADDEND] && !plan->takes_addend;
}

/* Why a variant does not run the plan's step on its device; or NULL. Then *plan has what its launch
 * needs. */
static const char *obstacle_of(const struct family *family, const struct variant *variant,
                               struct variant_plan *plan)
{
    const struct healcl_device *device = plan->device;
    const enum kernel_style style = variant->style;
    const enum kernel_style tuned_style = device->tuning.styles[family->preference];
    OBSTACLE_IF(style != STYLE_GENERAL && style != tuned_style, "the tuning selects another style");
    OBSTACLE_IF(has_long_loops(style) && device->info.loop_limit > 0,
                "loops end early on this device");
    OBSTACLE_IF(style == STYLE_SINGLE && layout_elements(&plan->step->out->layout) > INT32_MAX,
                "there are too many elements");
    plan->variant = variant;
    plan->launches = 1; /* unless the variant changes it */
    plan->takes_addend = false;
    const char *const obstacle = variant->plan(plan);
    plan->launches += needs_chain(plan);
    return obstacle;
}

const char *variant_obstacle(const struct family *family, const struct variant *variant,
                             const struct step *step, const struct healcl_device *device)
{
    struct variant_plan unused_plan;
    unused_plan.step = step;
    unused_plan.device = device;
    return obstacle_of(family, variant, &unused_plan);
}

/* Takes the first variant that has no obstacle. The last variant of each family is general, and has
 * none. */
void plan_variant(const struct step *step, const struct healcl_device *device,
                  struct variant_plan *plan)
{
    const struct family *family = family_of(step->kind);
    const struct variant *variant = family->variants;
    plan->step = step;
    plan->device = device;
    while (obstacle_of(family, variant, plan))
        variant++;
}

const struct variant *variant_for(const struct step *step, const struct healcl_device *device)
{
    struct variant_plan plan;
    plan_variant(step, device, &plan);
    return plan.variant;
}

/* ---------------------------------------------------------------- what a device lacks */

/* Why the host must run a step: the self-test of its kernels has failed, or HEALCL_LACKS names
 * its family or operation. NULL: the device may run it. */
const char *step_obstacle(const struct step *step, const struct healcl_device *device)
{
    static const char forced_off[] = "HEALCL_LACKS names it";
    const enum kernel_family family = family_of(step->kind)->preference;
    const bool is_built_in = step->kind != STEP_VENDOR; /* the self-test covers its kernels */
    const bool has_failed = device->info.failed_families >> family & 1;
    OBSTACLE_IF(is_built_in && has_failed, device->info.family_failure);
    if (step->kind == STEP_NTT && step->in[STEP_ADDEND]) { /* perhaps added by a chain */
        const struct step chain = {.kind = STEP_CHAIN, .origins = step->origins};
        RETURN_OBSTACLE(step_obstacle(&chain, device));
    }
    if (!device->programs->forced_unsupported)
        return NULL;
    OBSTACLE_IF(is_built_in && device_is_forced_off(device, kernel_family_name(family)),
                forced_off);
    for (size_t i = 0; i < step->origins->count; i++)
        OBSTACLE_IF(device_is_forced_off(device, origin_operation(&step->origins->of[i])->name),
                    forced_off);
    return NULL;
}

/* Whether a name of `length` characters, which is not terminated, is this one. */
static bool is_name(const char *name, size_t length, const char *known)
{
    return strlen(known) == length && strncmp(name, known, length) == 0;
}

/* Whether HEALCL_LACKS may contain a name: "all", an operation of the table, or a family of
 * kernels. */
static bool can_be_unsupported(const struct operation_table *table, const char *name, size_t length)
{
    for (size_t i = 0; i < operation_count(table); i++)
        if (is_name(name, length, operation_at(table, i)->name))
            return true;
    for (int family = 0; family < FAMILY_COUNT; family++)
        if (is_name(name, length, kernel_family_name((enum kernel_family)family)))
            return true;
    return is_name(name, length, "all");
}

/* Checks the names in HEALCL_LACKS, which commas separate. */
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

/* The transform writes out without its addend and factors. The launches of a chain, a product and a
 * sum, follow. */
static enum healcl_status choose_with_chain(struct launcher *self, const struct variant_plan *plan,
                                            struct healcl_error *error)
{
    struct step_chain chain;
    struct step transform = *plan->step;
    struct variant_plan transform_plan = *plan;
    step_chain_of(plan->step, &chain);
    transform.in[STEP_ADDEND] = transform.in[STEP_FACTORS] = NULL;
    transform_plan.step = &transform;
    TRY(plan->variant->choose(self, &transform_plan, error));
    self->templates.operands = step_chain_operands;
    return choose_variant(self, &chain.step, error);
}

enum healcl_status choose_variant(struct launcher *self, const struct step *step,
                                  struct healcl_error *error)
{
    struct variant_plan plan;
    plan_variant(step, self->device, &plan);
    const struct family *family = family_of(step->kind);
    if (needs_chain(&plan))
        return choose_with_chain(self, &plan, error);
    if (family->choose)
        return family->choose(self, &plan, error);
    return plan.variant->choose(self, &plan, error);
}
