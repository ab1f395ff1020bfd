#include "tools/tune.h"

#include "core/format.h"
#include "kernels/variant.h"
#include "opencl/opening.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- what is measured */

enum { MEGABYTES_8 = 8 << 20, MEGABYTES_32 = 32 << 20 };

/* The cases of a family: frequent operations with several styles, each of at most a few
 * milliseconds. */
static const struct tune_case {
    enum kernel_family family;
    const char *operation;
    struct bench_settings settings;
} cases[] = {
    {FAMILY_copy, "copy", BENCH_SETTINGS([BENCH_BYTES] = MEGABYTES_32)},
    {FAMILY_copy, "contiguous", BENCH_SETTINGS([BENCH_BYTES] = MEGABYTES_32)},
    {FAMILY_elementwise, "modmul", BENCH_SETTINGS(0)},
    {FAMILY_elementwise, "modmul",
     BENCH_SETTINGS([BENCH_LAYOUT] = BENCH_HEAL, [BENCH_BATCH] = 8, [BENCH_S] = 784, [BENCH_N] = 16,
                    [BENCH_K] = 2)},
    {FAMILY_elementwise, "modsum", BENCH_SETTINGS(0)},
    {FAMILY_sum, "axis_modsum", BENCH_SETTINGS([BENCH_BYTES] = MEGABYTES_32)},
    {FAMILY_sum, "modmul_axis_sum", BENCH_SETTINGS([BENCH_BATCH] = 10)},
    {FAMILY_transform, "ntt", BENCH_SETTINGS([BENCH_BATCH] = 64)},
    {FAMILY_transform, "intt",
     BENCH_SETTINGS([BENCH_BATCH] = 64, [BENCH_PERM] = BENCH_PERM_REVERSE)},
    {FAMILY_transform, "ntt",
     BENCH_SETTINGS([BENCH_BATCH] = 16, [BENCH_LAYOUT] = BENCH_HEAL, [BENCH_K] = 2, [BENCH_R] = 2)},
    {FAMILY_transform, "ntt", BENCH_SETTINGS([BENCH_BATCH] = 4, [BENCH_N] = 65536)},
    {FAMILY_digits, "apply_g_decomp", BENCH_SETTINGS([BENCH_BYTES] = MEGABYTES_32)},
    {FAMILY_gather, "take_along_axis", BENCH_SETTINGS([BENCH_BYTES] = MEGABYTES_8)},
};

enum { CASE_COUNT = sizeof cases / sizeof *cases, SAMPLES = 7 };

static const char LOCAL_SIZE[] = "local_size", ELEMENTS[] = "elements_per_item",
                  ACCESS[] = "access_bytes", LAUNCHES[] = "launches_at_once",
                  MULTIPLY[] = "multiply";

/* Whether a subject is a tunable of thin kernels. */
static bool is_style(const char *subject)
{
    return subject == LOCAL_SIZE || subject == ELEMENTS || subject == ACCESS;
}

/* Transforms have a separate tunable. */
static bool decides(const char *subject, const struct tune_case *measured)
{
    if (is_style(subject))
        return measured->family != FAMILY_transform;
    if (subject == LAUNCHES)
        return true;
    if (subject == MULTIPLY)
        return measured->family == FAMILY_elementwise || measured->family == FAMILY_transform;
    return strcmp(kernel_family_name(measured->family), subject) == 0;
}

/* ---------------------------------------------------------------- alternatives */

struct lister {
    const struct device_info *info;
    struct tune_report *report;
    const char *only; /* subject; or NULL */
};

/* Adds an alternative, unless the device cannot run it or it is in the list. */
__attribute__((format(printf, 3, 4))) static void add(struct lister *lister, const char *subject,
                                                      const char *format, ...)
{
    struct tune_report *report = lister->report;
    struct tune_alternative alternative = {.subject = subject};
    struct device_tuning ignored = report->tuning;
    if (lister->only && strcmp(lister->only, subject) != 0)
        return;
    FORMAT_INTO(alternative.choice, sizeof alternative.choice, format);
    bool known = tuning_parse(&ignored, alternative.choice, "", lister->info, NULL) != HEALCL_OK;
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->alternatives[i].choice, alternative.choice) == 0)
            known = true;
    if (!known && report->count < TUNE_ALTERNATIVES_MAX)
        report->alternatives[report->count++] = alternative;
}

static void add_number(struct lister *lister, const char *subject, uint32_t value)
{
    add(lister, subject, "%s=%" PRIu32, subject, value);
}

/* Adds the default, then other values; the list ends with 0. */
static void add_numbers(struct lister *lister, const char *subject, uint32_t value,
                        const uint32_t *others)
{
    add_number(lister, subject, value);
    for (; *others; others++)
        add_number(lister, subject, *others);
}

/* The style whose work-items share a transform has several sizes. Each comes with both radices, for
 * rows in sequence and side by side. */
static void add_style(struct lister *lister, enum kernel_family family, enum kernel_style style,
                      uint32_t transform_local_size)
{
    bool any;
    const uint32_t tunables = style_tunables(family, style, &any);
    const char *name = kernel_family_name(family);
    char choice[TUNE_CHOICE_SIZE / 2];
    snprintf(choice, sizeof choice, "%s=%s", name, kernel_style_name(style));
    const uint32_t radix = lister->report->tuning.transform_radix;
    const uint32_t rows_radix = lister->report->tuning.transform_rows_radix;
    if (tunables >> TUNABLE_transform_radix & 1)
        for (int i = 0; i < 4; i++)
            add(lister, name,
                "%s,transform_local_size=%" PRIu32 ",transform_radix=%" PRIu32
                ",transform_rows_radix=%" PRIu32,
                choice, transform_local_size, i < 2 ? radix : 24 - radix,
                i % 2 == 0 ? rows_radix : 24 - rows_radix);
    else if (tunables >> TUNABLE_transform_local_size & 1)
        add(lister, name, "%s,transform_local_size=%" PRIu32, choice, transform_local_size);
    else
        add(lister, name, "%s", choice);
}

/* Adds a family's default style, then the others. */
static void list_family(struct lister *lister, enum kernel_family family, const uint32_t *sizes)
{
    const struct device_tuning *tuning = &lister->report->tuning;
    add_style(lister, family, tuning->styles[family], tuning->transform_local_size);
    for (int s = 0; s < STYLE_COUNT; s++)
        for (const uint32_t *size = sizes; *size; size++)
            if (kernel_family_has(family, (enum kernel_style)s))
                add_style(lister, family, (enum kernel_style)s, *size);
}

static void list_all(struct lister *lister)
{
    static const uint32_t cpu_sizes[] = {1, 8, 64, 0}, other_sizes[] = {64, 128, 256, 512, 0},
                          cpu_elements[] = {64, 1024, 16384, 0},
                          other_elements[] = {1, 2, 4, 16, 0},
                          launches[] = {1, LAUNCHES_AT_ONCE_MAX, 0};
    const struct device_info *info = lister->info;
    const struct device_tuning *tuning = &lister->report->tuning;
    bool is_cpu = info->type & CL_DEVICE_TYPE_CPU;
    const uint32_t *sizes = is_cpu ? cpu_sizes : other_sizes;

    add_numbers(lister, LOCAL_SIZE, tuning->local_size, sizes);
    add_numbers(lister, ELEMENTS, tuning->elements_per_item,
                is_cpu ? cpu_elements : other_elements);
    for (uint32_t bytes = tuning->access_bytes; bytes > 1 && !is_cpu; bytes /= 4)
        add_number(lister, ACCESS, bytes);
    for (int family = 0; family < FAMILY_COUNT; family++)
        list_family(lister, (enum kernel_family)family, sizes);
    for (uint32_t i = 0; is_cpu && i < MULTIPLY_COUNT; i++)
        add(lister, MULTIPLY, "%s=%s", MULTIPLY,
            multiply_name((enum multiply)((tuning->multiply + i) % MULTIPLY_COUNT)));
    if (info->out_of_order)
        add_numbers(lister, LAUNCHES, tuning->launches_at_once, launches);
}

void tune_list(const struct device_info *info, const char *only, struct tune_report *report)
{
    struct lister lister = {info, report, only};
    *report = (struct tune_report){.tuning = tuning_default(info)};
    if (!tuning_kind_is_forced())
        tuning_of_files(info, &report->tuning);
    list_all(&lister);
    tune_read_kept(info, only, report);
}

void tune_read_kept(const struct device_info *info, const char *only, struct tune_report *report)
{
    if (only && !tuning_kind_is_forced())
        (void)tuning_read_cached(&report->tuning, info);
    kernel_choices_read_cached(&report->choices, info);
}

enum healcl_status tune_choose(const struct device_info *info,
                               const struct tune_alternative *alternative,
                               struct tune_report *report, struct healcl_error *error)
{
    if (!alternative->kernel)
        return tuning_parse(&report->tuning, alternative->choice, "tune", info, error);
    kernel_choices_set(&report->choices, alternative->of, alternative->number);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- kernels of manifests */

static void add_kernel(struct lister *lister, const struct tune_alternative *subject,
                       const struct vendor_kernel *kernel, uint32_t place)
{
    struct tune_report *report = lister->report;
    if (!vendor_is_for_device(kernel, lister->info))
        return;
    for (uint32_t i = 0; i < kernel->alternative_count && report->count < TUNE_ALTERNATIVES_MAX;
         i++) {
        struct tune_alternative *added = &report->alternatives[report->count++];
        *added = *subject;
        added->kernel = kernel->names[i];
        added->number = vendor_choice(place, i);
        snprintf(added->choice, sizeof added->choice, "%s", kernel->names[i]);
    }
}

/* Does not measure a subject with a single alternative. */
static void end_subject(struct tune_report *report, size_t first)
{
    if (report->count == first + 1)
        report->count = first;
}

void tune_list_kernels(const struct device_info *info, const struct operation_table *table,
                       const struct examples *examples, const char *only,
                       struct tune_report *report)
{
    struct lister lister = {info, report, NULL};
    const struct vendor_operations *all = vendor_of_table(table);
    const struct operation *operation;
    const char *name = only && *only == '_' ? only + 1 : only;
    for (size_t i = 0; (operation = example_operation_at(table, i)); i++) {
        const struct vendor_operation *vendor = example_vendor(operation);
        const struct tune_alternative subject = {
            .subject = operation->name, .operation = operation, .of = vendor->identity};
        const size_t first = report->count;
        if ((name && strcmp(name, operation->name) != 0) || vendor->body_count == 0 ||
            !example_from(examples->first, operation))
            continue;
        for (uint32_t place = 0; place < vendor->kernel_count; place++)
            add_kernel(&lister, &subject, vendor->kernels[place], place);
        end_subject(report, first);
    }
    for (int kind = 0; all && kind < STEP_KINDS; kind++) {
        const struct vendor_replacement *next = all->replacements[kind];
        const size_t first = report->count;
        if (!next || (name && strcmp(name, step_traits[kind].id) != 0))
            continue;
        const struct tune_alternative subject = {.subject = step_traits[kind].subject,
                                                 .of = all->replacement_identities[kind]};
        for (uint32_t place = 0; next; next = next->next, place++)
            add_kernel(&lister, &subject, next->kernel, place);
        end_subject(report, first);
    }
}

const char *const tune_outcome_names[] = {"not measured", "right", "wrong", "failed"};

double tune_spread(const struct tune_alternative *alternative)
{
    if (alternative->outcome != TUNE_RIGHT || alternative->nanoseconds <= 0)
        return 0;
    return 100 * (alternative->median_nanoseconds / alternative->nanoseconds - 1);
}

bool tune_is_decided(const struct tune_report *report, const char *subject)
{
    for (size_t i = 0; i < report->count; i++)
        if (report->alternatives[i].chosen && strcmp(report->alternatives[i].subject, subject) == 0)
            return true;
    return false;
}

/* ---------------------------------------------------------------- measuring */

/* The state of one call of tune_measure. */
struct tuner {
    struct healcl_device **device;
    const struct tune_options *options;
    struct tune_report *report;
};

/* Reopens the device, so that a failure does not affect the next alternative. */
static enum healcl_status open_anew(struct healcl_device **device, struct healcl_error *error)
{
    const struct opencl *cl = (*device)->cl;
    const struct healcl_device_info about = healcl_device_describe(*device);
    healcl_device_close(*device);
    return device_open(cl, about.selector, device, error);
}

static void add_times(struct tune_alternative *alternative, const struct bench_result *result)
{
    alternative->nanoseconds += result->min_ns; /* other load only increases it */
    alternative->median_nanoseconds += result->median_ns;
}

/* Measures the examples of a manifest's operation that the alternative runs. */
static enum healcl_status run_examples(struct tuner *tuner, struct tune_alternative *alternative,
                                       const struct bench_options *bench,
                                       struct healcl_error *error)
{
    const struct examples *examples = tuner->options->examples;
    const struct example *example = example_from(examples->first, alternative->operation);
    uint32_t measured = 0;
    for (; example; example = example_from(example->next, alternative->operation)) {
        struct bench_result result;
        const char *kernel = alternative->kernel;
        TRY(bench_example(*tuner->device, bench, examples, example, EXAMPLE_KERNEL, &kernel,
                          &result, error));
        measured += result.samples > 0;
        add_times(alternative, &result);
    }
    if (measured == 0)
        REFUSE(error, "it runs no example");
    return HEALCL_OK;
}

/* Measures the cases of an alternative. A replacement without a case is measured with the default
 * parameters of its operation. A variant that can run none of the cases on the device is refused,
 * because another variant would give the times. */
static enum healcl_status run_cases(struct tuner *tuner, struct tune_alternative *alternative,
                                    struct healcl_error *error)
{
    const struct tune_options *options = tuner->options;
    const bool replaces = alternative->kernel != NULL;
    const struct bench_options bench = {.repeat = SAMPLES,
                                        .memory_limit = options->memory_limit,
                                        .table = replaces ? options->table : NULL};
    tune_bench *const run = options->bench ? options->bench : bench_run;
    bool measured = false;
    alternative->nanoseconds = alternative->median_nanoseconds = 0;
    if (alternative->operation)
        return run_examples(tuner, alternative, &bench, error);
    int kind = 0; /* of the step, by its subject */
    while (replaces && step_traits[kind].subject != alternative->subject)
        kind++;
    const char *step = !replaces ? NULL : kind == STEP_COPY ? "copy" : step_traits[kind].operation;
    const struct tune_case own = {.operation = step};
    for (int i = 0; i <= CASE_COUNT; i++) {
        const struct tune_case *one = i < CASE_COUNT ? &cases[i] : &own;
        struct bench_result result;
        if (i == CASE_COUNT ? !replaces || measured
            : replaces      ? strcmp(one->operation, step) != 0
                            : !decides(alternative->subject, one))
            continue;
        TRY(run(*tuner->device, bench_operation_find(one->operation), &one->settings, &bench,
                &result, error));
        add_times(alternative, &result);
        measured = true;
    }
    return HEALCL_OK;
}

/* Measures an alternative once. A wrong result or a failure is an outcome, not an error. So is a
 * refusal: another style of kernels may run on this device. */
static enum healcl_status try_once(struct tuner *tuner, struct tune_alternative *alternative,
                                   struct healcl_error *error)
{
    struct healcl_error problem = {.status = HEALCL_OK};
    enum healcl_status status = run_cases(tuner, alternative, &problem);
    alternative->outcome = status == HEALCL_DIFFERENT ? TUNE_WRONG
                           : status != HEALCL_OK      ? TUNE_FAILED
                                                      : TUNE_RIGHT;
    if (status == HEALCL_NO_MEMORY)
        xmalloc_fail();
    snprintf(alternative->reason, sizeof alternative->reason, "%s",
             status == HEALCL_OK ? "" : problem.message);
    healcl_error_clear(&problem);
    return alternative->outcome == TUNE_FAILED ? open_anew(tuner->device, error) : HEALCL_OK;
}

static enum healcl_status measure(struct tuner *tuner, struct tune_alternative *alternative,
                                  struct healcl_error *error)
{
    const struct tune_options *options = tuner->options;
    struct healcl_device *device = *tuner->device;
    struct device_tuning tuning = tuner->report->tuning;
    if (is_style(alternative->subject))
        TRY(tuning_parse(&tuning, "general", "tune", &device->info, error));
    if (alternative->kernel)
        kernel_choices_set(&device->programs->choices, alternative->of, alternative->number);
    else
        TRY(tuning_parse(&tuning, alternative->choice, "tune", &device->info, error));
    TRY(device_set_tuning(device, &tuning, error));
    if (options->measuring)
        options->measuring(alternative);
    for (int i = 0; i < TUNE_TRIES; i++) {
        TRY(try_once(tuner, alternative, error));
        if (options->force || tune_spread(alternative) <= TUNE_SPREAD_MOST)
            return HEALCL_OK;
    }
    FAIL(error, HEALCL_DEVICE,
         "the machine is too busy: with '%s' the median of %d samples took %.3g %% longer than the "
         "fastest (%.4g ms and %.4g ms), and more than %d %% in each of %d tries; nothing is "
         "chosen (--force chooses anyway)",
         alternative->choice, SAMPLES, tune_spread(alternative),
         alternative->median_nanoseconds / 1e6, alternative->nanoseconds / 1e6, TUNE_SPREAD_MOST,
         TUNE_TRIES);
}

/* Returns the fastest of `count` alternatives, or NULL. The default, which is the first, is
 * replaced only by one that is faster by more than chance explains. */
static struct tune_alternative *fastest(struct tune_alternative *alternatives, size_t count)
{
    static const double CHANCE = 0.95;
    struct tune_alternative *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (alternatives[i].outcome == TUNE_RIGHT &&
            (!best || alternatives[i].nanoseconds <
                          best->nanoseconds * (best == &alternatives[0] ? CHANCE : 1)))
            best = &alternatives[i];
    return best;
}

/* Measures the alternatives of a subject and chooses one. */
static enum healcl_status decide(struct tuner *tuner, struct tune_alternative *list, size_t count,
                                 struct healcl_error *error)
{
    for (size_t i = 0; i < count; i++)
        TRY(measure(tuner, &list[i], error));
    struct tune_alternative *best = fastest(list, count);
    if (!best && list[0].kernel) /* a wrong manifest must not affect other subjects */
        return HEALCL_OK;
    if (!best)
        FAIL(error, HEALCL_DEVICE, "no choice of '%s' gives right results: %s", list[0].subject,
             list[0].reason);
    best->chosen = true;
    return tune_choose(&(*tuner->device)->info, best, tuner->report, error);
}

enum healcl_status tune_measure(struct healcl_device **device, const struct tune_options *options,
                                struct tune_report *report, struct healcl_error *error)
{
    struct tuner tuner = {device, options, report};
    struct tune_alternative *list = report->alternatives;
    for (size_t first = 0, end; first < report->count; first = end) {
        const char *subject = list[first].subject;
        for (end = first; end < report->count && list[end].subject == subject; end++)
            ;
        TRY(decide(&tuner, list + first, end - first, error));
    }
    (*device)->programs->choices = report->choices;
    return device_set_tuning(*device, &report->tuning, error);
}
