#include "check/served.h"

#include <string.h>

#include "check/example.h"
#include "kernels/variant.h"

enum { N = 1024, K = 2, VARIANTS = 4 };

/* What is asked about one operation and certain dtypes. */
struct question {
    const struct healcl_device *device;
    struct served *served;
};

static void add_kernel(struct served *served, const char *name)
{
    for (size_t i = 0; i < served->kernel_count; i++)
        if (strcmp(served->kernels[i], name) == 0)
            return;
    if (served->kernel_count < SERVED_KERNELS_MAX)
        served->kernels[served->kernel_count++] = name;
}

static void ask_step(const struct question *question, const struct plan *plan,
                     const struct step *step)
{
    const struct healcl_device *device = question->device;
    if (step_is_left_out(step, device) || (step->kind != STEP_VENDOR && !family_of(step->kind)))
        return;
    const char *lack = step_lack(step, device);
    const char *vendors = vendor_kernel_for(plan, step, device).name;
    if (lack)
        question->served->kernel_missing = lack;
    else
        add_kernel(question->served, vendors ? vendors : variant_for(step, device)->name);
}

static void ask_plan(void *context, const struct plan *plan)
{
    for (size_t i = 0; i < plan->step_count; i++)
        ask_step(context, plan, &plan->steps[i]);
}

/* ---------------------------------------------------------------- built-in operations */

/* Those dtypes of the list, added where they are new. */
static struct served *find(struct served *list, size_t *count, const struct form *form,
                           const struct problem_dtypes *dtypes)
{
    const struct coverage_row row = {.form = form, .dtypes = *dtypes};
    char text[COVERAGE_DTYPES_SIZE];
    coverage_dtypes_text(&row, text);
    for (size_t i = 0; i < *count; i++)
        if (strcmp(list[i].dtypes, text) == 0)
            return &list[i];
    struct served *served = &list[(*count)++];
    *served = (struct served){.kernel_count = 0};
    strcpy(served->dtypes, text);
    return served;
}

static void ask_form(struct question *question, const struct operation_table *table,
                     const struct form *form, const struct problem_dtypes *dtypes)
{
    for (uint64_t variant = 0; variant < VARIANTS; variant++) {
        struct random random = {COVERAGE_SEED + variant};
        struct problem problem;
        problem_make(&problem, form, dtypes, N, K, variant, &random);
        problem.table = table;
        (void)problem_look(&problem, &random, ask_plan, question);
    }
}

static size_t list_builtin(const struct healcl_device *device, const struct operation_table *table,
                           const struct operation *operation, struct served list[SERVED_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < form_count; i++)
        for (int value = 0; value < DTYPE_COUNT; value++)
            for (int also = 0; also < DTYPE_COUNT; also++) {
                const struct problem_dtypes dtypes = {(enum dtype)value, (enum dtype)also,
                                                      DTYPE_INT64};
                if (forms[i].operation != operation || !problem_accepts(&forms[i], &dtypes) ||
                    (problem_also(&forms[i]) < 0 && also != value))
                    continue;
                struct question question = {device, find(list, &count, &forms[i], &dtypes)};
                ask_form(&question, table, &forms[i], &dtypes);
            }
    return count;
}

/* ---------------------------------------------------------------- operations of manifests */

static size_t list_vendors(const struct healcl_device *device, const struct operation *operation,
                           struct served list[SERVED_MAX])
{
    const struct vendor_operation *vendors = example_vendor(operation);
    list[0] = (struct served){.kernel_count = 0};
    dtype_rule_text(&operation->dtypes, list[0].dtypes);
    for (uint32_t i = 0; i < vendors->kernel_count; i++)
        if (vendor_is_for_device(vendors->kernels[i], &device->info))
            add_kernel(&list[0], vendors->kernels[i]->names[0]);
    return 1;
}

size_t served_list(const struct healcl_device *device, const struct operation_table *table,
                   const struct operation *operation, struct served list[SERVED_MAX])
{
    return operation->number < OPERATION_COUNT ? list_builtin(device, table, operation, list)
                                               : list_vendors(device, operation, list);
}
