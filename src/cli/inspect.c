/* healcl inspect: the contents of a transcript, the effect of passes, and the kernels that run
 * it. */

#include "cli/command_job.h"
#include "cli/requests.h"
#include "kernels/variant.h"
#include "plan/passes.h"
#include "plan/split.h"
#include "run/loaded_transcript.h"
#include "run/run.h"
#include "vendor/vendor.h"

enum { RANKS_MAX = 1000000 };

/* The state of `healcl inspect`. */
struct inspect_command {
    struct command_job job; /* used only for kernels and rates */
    bool kernels, passes, roofline, steps;
    struct memory_facts memory; /* limit 0: none */
    struct healcl_transcript *transcript;
    struct roofline rates;
    struct healcl_split split; /* ranks 0: nothing is split */
    const char *axis_text;     /* "ENTRY:AXIS", or NULL: chosen automatically */
    struct healcl_transcript *part;
};

static enum healcl_status find_places(struct inspect_command *self, struct healcl_error *error)
{
    const struct places_rule rule = {.least = PLACE_BYTES};
    struct places places;
    TRY(places_init(&places, self->transcript->plan, &rule, error));
    self->memory.allocated = places.place_bytes + places.other_bytes;
    self->memory.live = places.live_bytes;
    places_release(&places);
    return HEALCL_OK;
}

/* Makes the first rank's part, which is the largest. */
static enum healcl_status open_part(struct inspect_command *self, struct healcl_error *error)
{
    if (self->split.ranks == 0)
        return HEALCL_OK;
    if (self->axis_text)
        TRY(find_split(self->transcript, self->axis_text, &self->split, error));
    else if (self->split.ranks > 1)
        TRY(healcl_transcript_choose_split(self->transcript, &self->split, error));
    return healcl_transcript_split(self->transcript, &self->split, &self->part, error);
}

static enum healcl_status open_all(void *context, struct healcl_error *error)
{
    struct inspect_command *self = context;
    struct command_job *job = &self->job;
    TRY(healcl_transcript_open(job->file, &job->options, &self->transcript, error));
    if (self->memory.limit > 0)
        TRY(memory_predict(self->transcript->plan, self->memory.limit, &self->memory.price,
                           &self->memory.peak, error));
    else
        TRY(find_places(self, error));
    if (self->kernels || self->roofline)
        TRY(healcl_device_open(job->selector, &job->device, error));
    if (self->kernels)
        TRY(unsupported_check(job->device, self->transcript->plan->table, error));
    if (self->roofline &&
        !roofline_read_cached(&job->device->info, &job->device->tuning, &self->rates))
        TRY(roofline_measure(job->device, 0, &self->rates, error));
    return open_part(self, error);
}

/* ---------------------------------------------------------------- JSON */

/* Adds costs before or after the passes. */
static void add_costs(cJSON *object, const struct segment_cost *cost,
                      const struct roofline *roofline)
{
    JSON_ADD(object, NUMBER("launches", cost->launches), NUMBER("device_bytes", cost->bytes));
    for (int i = 0; i < WORKS; i++)
        json_add_number(object, segment_work_names[i], cost->work[i]);
    json_add_number(object, "device_memory_peak", cost->memory);
    if (roofline->bytes > 0)
        json_add_number(object, "roofline_ns", roofline_time(roofline, cost));
}

/* Counts the kernels that a segment launches in a later run. */
static uint64_t launches_of(const struct plan *plan, const struct segment *segment,
                            const struct healcl_device *device)
{
    uint64_t launches = 0;
    for (size_t i = 0; i < segment->step_count; i++) {
        const struct step *step = &plan->steps[segment->first_step + i];
        struct variant_plan found = {.launches = 1};
        if (!family_of(step->kind) || step_is_left_out(step, device) ||
            step_obstacle(step, device) || layout_elements(&step->out->layout) == 0)
            continue;
        if (step->kind != STEP_VENDOR && !vendor_kernel_for(plan, step, device).name)
            plan_variant(step, device, &found);
        launches += found.launches;
    }
    return launches;
}

static void add_segment(cJSON *segments, const struct plan *plan, const struct segment *segment,
                        const struct roofline *roofline, const struct healcl_device *device)
{
    cJSON *object = json_add_object(segments, NULL);
    JSON_ADD(object, STRING("name", segment->name), NUMBER("operations", segment->operations),
             NUMBER("frees", segment->frees), NUMBER("bytes_up", segment->bytes_up),
             NUMBER("bytes_down", segment->bytes_down),
             JSON_IF(device, NUMBER("kernel_launches", launches_of(plan, segment, device))));
    add_costs(object, &segment->after, roofline);
    add_costs(json_add_object(object, "without_passes"), &segment->before, roofline);
    cJSON *changes = json_add_object(object, "passes");
    for (size_t i = 0; segment->pass_changes && i < PASS_COUNT; i++)
        json_add_number(changes, passes[i].name, segment->pass_changes[i]);
    cJSON *kinds = json_add_array(object, "operations_by_kind");
    for (size_t number = 0; number < operation_count(plan->table); number++) {
        if (segment->counts[number] > 0)
            JSON_ADD(json_add_object(kinds, NULL),
                     STRING("name", operation_at(plan->table, number)->name),
                     NUMBER("count", segment->counts[number]));
    }
}

/* Returns why a variant cannot run a step; NULL if it can. */
static const char *why_not(const struct plan *plan, const struct step *step,
                           const struct variant *variant, const struct healcl_device *device)
{
    const struct family *family = family_of(step->kind);
    const char *obstacle = step_obstacle(step, device);
    if (obstacle || vendor_kernel_for(plan, step, device).name)
        return obstacle ? obstacle : "a manifest's kernel runs it";
    if (variant_for(step, device) == variant)
        return NULL;
    const char *reason = variant_obstacle(family, variant, step, device);
    return reason ? reason : "an earlier variant can";
}

/* Counts a step for the kernel that runs it, or for the reason why none does. */
static void count_step(cJSON *list, enum step_kind kind, const char *family, const char *kernel,
                       const char *style, const char *reason)
{
    cJSON *object;
    cJSON_ArrayForEach(object, list)
    {
        if (json_is(object, "family", family) && json_is(object, "kernel", kernel) &&
            json_is(object, "step", step_traits[kind].name))
            break;
    }
    if (!object) {
        object = json_add_object(list, NULL);
        JSON_ADD(object, STRING("step", step_traits[kind].name), STRING("family", family),
                 STRING("kernel", kernel), STRING("style", style));
        json_increase(object, "steps", 0);
        (void)json_add_array(object, "why_not");
    }
    cJSON *reasons = cJSON_GetObjectItemCaseSensitive(object, "why_not");
    json_increase(reason ? json_row(reasons, "reason", reason) : object, "steps", 1);
}

/* Counts a step for the manifests' kernels that could run it. */
static void count_vendors(cJSON *list, const struct plan *plan, const struct healcl_device *device,
                          const struct step *step)
{
    struct healcl_error why = {.status = HEALCL_OK};
    const struct vendor_kernel *kernel;
    for (uint32_t i = 0; (kernel = vendor_kernel_at(plan, step, device, i, &why)); i++) {
        const bool runs = why.status == HEALCL_OK;
        count_step(list, step->kind, "vendor",
                   runs ? vendor_kernel_for(plan, step, device).name : kernel->names[0], "vendor",
                   runs ? NULL : why.message);
        healcl_error_clear(&why);
    }
}

static void add_kernels(cJSON *document, const struct plan *plan,
                        const struct healcl_device *device)
{
    report_add_device(json_add_object(document, "device"), &device->info);
    cJSON *list = json_add_array(document, "kernels");
    for (int kind = 0; kind < STEP_KINDS; kind++) {
        const struct family *family = kind == STEP_VENDOR ? NULL : family_of((enum step_kind)kind);
        for (size_t s = 0; s < plan->step_count; s++) {
            const struct step *step = &plan->steps[s];
            const bool is_left_out = step_is_left_out(step, device);
            if ((int)step->kind == kind && (!is_left_out || kind == STEP_VENDOR))
                count_vendors(list, plan, device, step);
            if ((int)step->kind != kind || is_left_out)
                continue;
            for (size_t i = 0; family && i < family->count; i++)
                count_step(list, step->kind, family->name, family->variants[i].name,
                           kernel_style_name(family->variants[i].style),
                           why_not(plan, step, &family->variants[i], device));
        }
    }
}

static void add_rank(cJSON *object, const struct roofline *rates, const struct plan *plan,
                     uint64_t sent)
{
    uint64_t time = 0; /* for a run whose inputs are already uploaded */
    for (size_t s = 0; s < plan->segment_count; s++)
        time += roofline_time(rates, &plan->segments[s].after);
    JSON_ADD(object, NUMBER("device_memory_peak", plan->bytes_peak),
             NUMBER("bytes_up", plan->bytes_up), NUMBER("bytes_sent", sent),
             NUMBER("device_ns", time));
}

/* Adds which tensors are split, whole and exchanged, and the costs of one rank alone and of each
 * rank. */
static void add_ranks(cJSON *document, const struct inspect_command *self)
{
    const struct plan *plan = self->part->plan;
    cJSON *ranks = json_add_object(document, "ranks");
    json_add_number(ranks, "count", self->split.ranks);
    if (self->split.ranks > 1)
        report_add_split(ranks, self->part, &self->split, !self->axis_text);
    report_add_exchanges(ranks, self->part);
    add_rank(json_add_object(ranks, "alone"), &self->rates, self->transcript->plan, 0);
    add_rank(json_add_object(ranks, "each"), &self->rates, plan,
             exchange_bytes_sent(plan, 0, self->split.ranks));
    report_add_parts(ranks, self->part);
}

static cJSON *report_inspect(void *context)
{
    const struct inspect_command *self = context;
    const struct plan *plan = self->transcript->plan;
    const struct roofline *roofline = &self->rates;
    cJSON *document = json_report();
    /* The storage of constants is not a tensor of the transcript. */
    const size_t allocations = plan->storage_count - (plan->storage_count > 0);
    JSON_ADD(document, STRING("transcript", self->job.file), NUMBER("entries", plan->entries),
             NUMBER("operations", plan->operations), NUMBER("frees", plan->frees),
             NUMBER("tensors", plan->tensors), NUMBER("allocations", allocations),
             NUMBER("steps", plan->step_count));
    JSON_ADD(json_add_object(document, "results"), NUMBER("total", plan->results),
             NUMBER("expected", plan->expected));
    JSON_ADD(document, NUMBER("bytes_up", plan->bytes_up), NUMBER("bytes_down", plan->bytes_down),
             NUMBER("device_memory_peak", plan->bytes_peak));
    (void)report_add_memory(document, &self->memory);
    cJSON *segments = json_add_array(document, "segments");
    for (size_t i = 0; i < plan->segment_count; i++)
        add_segment(segments, plan, &plan->segments[i], roofline,
                    self->kernels ? self->job.device : NULL);
    if (roofline->bytes > 0)
        report_add_roofline(document, roofline);
    if (self->kernels)
        add_kernels(document, plan, self->job.device);
    if (self->part)
        add_ranks(document, self);
    return document;
}

/* ---------------------------------------------------------------- text */

static void print_plan(const cJSON *document, const struct style *style)
{
    static const struct view_line lines[] = {
        {"transcript", "{transcript}"},
        {"entries", "{entries}"},
        {"operations", "{operations} in {segments:#} segment{segments:s}"},
        {"tensors", "{tensors} names on {allocations} allocations"},
        {"results", "{results.total}, {results.expected} with an expected tensor"},
        {"upload", "{bytes_up:bytes}"},
        {"download", "{bytes_down:bytes}"},
        {"memory", "{device_memory_peak:bytes} at most[, in buffers of "
                   "{tensor_memory.allocated:bytes}]; without kernels' scratch memory"},
        {"limit", "{device_memory.tensors_peak:bytes} of tensors at most: "
                  "{device_memory.bytes_spilled:bytes} spilled, "
                  "{device_memory.bytes_brought_back:bytes} brought back, "
                  "{device_memory.bytes_streamed_again:bytes} uploaded again"}};
    static const struct view_column segment_columns[] = {
        {"segment", "{name|(outside segments)}", VIEW_SHRINKS},
        {"operations", "{operations}", VIEW_RIGHT},
        {"frees", "{frees}", VIEW_RIGHT},
        {"up", "{bytes_up:bytes?}", VIEW_RIGHT},
        {"down", "{bytes_down:bytes?}", VIEW_RIGHT},
        {"launches", "{kernel_launches}", VIEW_RIGHT}}; /* with --kernels */
    static const struct view_column kind_columns[] = {{"operation", "{name}", VIEW_SHRINKS},
                                                      {"count", "{count}", VIEW_RIGHT}};
    VIEW_LINES(style, document, lines);
    if (json_number_at(document, "segments") > 0) {
        VIEW_SECTION(style, json_at(document, "segments"), segment_columns);
    }
    if (json_number_at(document, "operations") > 0) {
        cJSON *kinds = report_sum_kinds(document);
        VIEW_SECTION(style, kinds, kind_columns);
        cJSON_Delete(kinds);
    }
}

/* Prints how many steps each pass has changed, in segments that launch kernels. */
static void print_changes(const cJSON *segments, const struct style *style)
{
    struct view_column columns[1 + PASS_COUNT] = {
        {"segment", "{name|(outside segments)}", VIEW_SHRINKS}};
    for (size_t i = 0; i < PASS_COUNT; i++)
        columns[1 + i] = (struct view_column){passes[i].name,
                                              xformat("{passes.%s}", passes[i].name), VIEW_RIGHT};
    VIEW_TABLE(style, segments, columns);
}

/* Prints costs of segments before and after passes. */
static void print_costs(const cJSON *segments, const struct style *style)
{
#define BEFORE_AND_AFTER(heading, key, form)                                            \
    {                                                                                   \
        heading, "{without_passes." key ":" form "?} -> {" key ":" form "}", VIEW_RIGHT \
    }
    static const struct view_column memory[] = {
        {"segment", "{name|(outside segments)}", VIEW_SHRINKS},
        BEFORE_AND_AFTER("launches", "launches", "#"),
        BEFORE_AND_AFTER("bytes", "device_bytes", "bytes"),
        BEFORE_AND_AFTER("memory", "device_memory_peak", "bytes"),
        BEFORE_AND_AFTER("roofline", "roofline_ns", "time")};
    static const struct view_column work[] = {
        {"segment", "{name|(outside segments)}", VIEW_SHRINKS},
        BEFORE_AND_AFTER("products", "products", "count"),
        BEFORE_AND_AFTER("summed", "summed_products", "count"),
        BEFORE_AND_AFTER("butterflies", "butterflies", "count"),
        BEFORE_AND_AFTER("digits", "digits", "count"),
        BEFORE_AND_AFTER("CRT digits", "crt_digits", "count")};
    VIEW_TABLE(style, segments, memory);
    VIEW_SECTION(style, segments, work);
}

static void print_passes(const cJSON *document, const struct style *style)
{
    cJSON *segments = cJSON_CreateArray();
    JSON_EACH(segment, json_at(document, "segments"))
    {
        if (json_number_at(segment, "without_passes.launches") > 0)
            cJSON_AddItemReferenceToArray(segments, segment);
    }
    putc('\n', style->stream);
    for (size_t i = 0; i < PASS_COUNT; i++)
        report_label(style, passes[i].name, "%s", passes[i].summary);
    putc('\n', style->stream);
    print_changes(segments, style);
    putc('\n', style->stream);
    print_costs(segments, style);
    cJSON_Delete(segments);
    view_text(style, document,
              "\nroofline, a second: copies {roofline.copied_bytes_per_s:bytes}"
              "[, products {roofline.products_per_s:count}]"
              "[, products of sums {roofline.summed_products_per_s:count}]"
              "[, butterflies {roofline.butterflies_per_s:count}]"
              "[, digits {roofline.digits_per_s:count}]"
              "[, CRT digits {roofline.crt_digits_per_s:count}]");
}

static void print_kernels(const cJSON *document, const struct style *style)
{
    static const struct view_column columns[] = {{"step", "{step}", 0},
                                                 {"kernel", "{kernel}", 0},
                                                 {"style", "{style}", 0},
                                                 {"steps", "{steps}", VIEW_RIGHT},
                                                 {"why not (steps)", "{why}", VIEW_SHRINKS}};
    cJSON *rows = cJSON_Duplicate(json_at(document, "kernels"), true);
    const char *last = "";
    JSON_EACH(row, rows)
    {
        cJSON *why = json_add_array(row, "why");
        JSON_EACH(reason, json_at(row, "why_not"))
        {
            json_add_string(why, NULL, view_fill(reason, "{reason} ({steps})"));
        }
        cJSON *step = cJSON_GetObjectItemCaseSensitive(row, "step");
        if (strcmp(step->valuestring, last) == 0)
            cJSON_SetValuestring(step, "");
        else
            last = cJSON_GetStringValue(step);
    }
    putc('\n', style->stream);
    view_line(style, document, "device", "{device.name} ({device.platform})");
    VIEW_SECTION(style, rows, columns);
    cJSON_Delete(rows);
}

#define PART "{bytes:bytes} for each rank, [{size} of each {period} of axis {axis}]{split!whole}"

static void print_ranks(const cJSON *document, const struct style *style)
{
    static const struct view_line costs[] = {
        {"one rank", "{alone.device_memory_peak:bytes} of memory, {alone.bytes_up:bytes} up[, "
                     "{alone.device_ns:time?} on its device]"},
        {"each", "{each.device_memory_peak:bytes} of memory, {each.bytes_up:bytes} up, "
                 "{each.bytes_sent:bytes} sent[, {each.device_ns:time?} on its device]"}};
    const cJSON *ranks = json_at(document, "ranks");
    putc('\n', style->stream);
    view_line(style, ranks, "ranks", "{count}");
    view_line(style, ranks, "split", REPORT_SPLIT);
    view_line(style, ranks, "exchange",
              "{exchanges} tensor{exchanges:s} of {exchange_bytes:bytes}");
    VIEW_LINES(style, ranks, costs);
    view_each(style, json_at(ranks, "inputs"), "input       tensor {tensor}: " PART);
    view_each(style, json_at(ranks, "results"), "result      tensor {tensor}: " PART);
}

/* ---------------------------------------------------------------- steps */

enum { ENTRY_WIDTH = 8, STEP_INDENT = ENTRY_WIDTH + 2 };

/* The transcript's entries of a step: "23" or "23+25". */
static void print_entries(const struct origins *origins, FILE *stream)
{
    int width = 0;
    for (size_t i = 0; i < origins->count; i++)
        width += snprintf(NULL, 0, i > 0 ? "+%zu" : "%zu", origins->of[i].entry);
    fprintf(stream, "%*s", width < ENTRY_WIDTH ? ENTRY_WIDTH - width : 0, "");
    for (size_t i = 0; i < origins->count; i++)
        fprintf(stream, i > 0 ? "+%zu" : "%zu", origins->of[i].entry);
    fputs("  ", stream);
}

static void print_sizes(const int64_t *sizes, uint32_t rank, FILE *stream)
{
    for (uint32_t axis = 0; axis < rank; axis++)
        fprintf(stream, axis > 0 ? ",%" PRId64 : "%" PRId64, sizes[axis]);
}

/* A view as storage, offset, shape and strides: "%7+16[3,2 : 8,0]". Strides of C order are omitted.
 * A scalar is shown by its value. */
static void print_view(const struct tensor *tensor, FILE *stream)
{
    const struct layout *layout = &tensor->layout;
    bool repeats = true;
    for (uint32_t axis = 0; axis < layout->rank; axis++)
        repeats &= layout->shape[axis] == 1 || layout->stride[axis] == 0;
    if (tensor->storage->scalars && repeats) {
        fprintf(stream, "%" PRId64, tensor->storage->scalars[layout->offset]);
        return;
    }
    fprintf(stream, "%%%" PRIu32, tensor->storage->id);
    if (layout->offset > 0)
        fprintf(stream, "+%" PRId64, layout->offset);
    putc('[', stream);
    print_sizes(layout->shape, layout->rank, stream);
    if (!layout_is_contiguous(layout)) {
        struct layout strides = *layout;
        for (uint32_t axis = 0; axis < layout->rank; axis++)
            if (layout->shape[axis] == 1)
                strides.stride[axis] = 0; /* any value */
        fputs(" : ", stream);
        print_sizes(strides.stride, layout->rank, stream);
    }
    putc(']', stream);
}

/* Returns known ranges of an input: "= 0", "< p" for residues, ">= 0". */
static const char *known_of(const struct step *step, int input)
{
    const uint32_t bit = UINT32_C(1) << input;
    return step->zeros & bit         ? " = 0"
           : step->residues & bit    ? " < p"
           : step->nonnegative & bit ? " >= 0"
                                     : "";
}

/* The kind of a step. A chain shows its two kinds, and a step with a number shows that. */
static void print_kind(const struct step *step, FILE *stream)
{
    const struct step_traits *traits = &step_traits[step->kind];
    fputs(step->side == STEP_OF_BODY ? "body of " : "", stream);
    fputs(step->vendor && step->kind == STEP_VENDOR ? step->origins->of->name : traits->id, stream);
    if (step->kind == STEP_CHAIN)
        fprintf(stream, " %s %s", step_traits[step->value[0]].id, step_traits[step->value[1]].id);
    else if (!traits->adds && (step->value[0] != 0 || step->value[1] != 0))
        fprintf(stream, " %" PRId64, step->value[0]);
    if (step->kind != STEP_CHAIN && step->value[1] != 0)
        fprintf(stream, " %" PRId64, step->value[1]);
}

/* Prints the rest of a step, after its entries. */
static void print_step(const struct step *step, FILE *stream)
{
    print_kind(step, stream);
    if (step->kind == STEP_RELEASE) {
        fprintf(stream, ": %%%" PRIu32, step->in[0]->storage->id);
        return;
    }
    const char *before = ": ";
    FOR_EACH_INPUT (i, tensor, step) {
        fputs(before, stream);
        print_view(tensor, stream);
        fputs(known_of(step, i), stream);
        before = ", ";
    }
    if (step->out) {
        fprintf(stream, step_adds(step) ? " added to %s " : " -> %s ",
                dtype_name(step->out->storage->dtype));
        print_view(step->out, stream);
        fputs(known_of(step, STEP_INPUTS), stream);
    }
}

static void print_exchange(const struct exchange *exchange, FILE *stream)
{
    fprintf(stream, "%8s  exchange: ", "");
    print_view(exchange->sum, stream);
    fputs(" modulo ", stream);
    print_view(exchange->moduli, stream);
    putc('\n', stream);
}

static void print_steps(const struct plan *plan, const struct style *style)
{
    for (size_t s = 0; s < plan->segment_count; s++) {
        const struct segment *segment = &plan->segments[s];
        char name[256];
        snprintf(name, sizeof name, "%s", segment_title(segment->name));
        text_clean(name, false);
        fprintf(style->stream, "\n%s\n", name);
        for (size_t i = 0; i < segment->step_count; i++) {
            const struct step *step = &plan->steps[segment->first_step + i];
            char *text;
            size_t size;
            FILE *line = xopen_memstream(&text, &size);
            print_step(step, line);
            xclose(line);
            print_entries(step->origins, style->stream);
            text_wrap(style->stream, text, STEP_INDENT, STEP_INDENT, style->width);
            free(text);
        }
        for (size_t i = 0; i < segment->exchange_count; i++)
            print_exchange(&segment->exchanges[i], style->stream);
    }
}

static void print_inspect(void *context, const cJSON *document, const struct style *style)
{
    const struct inspect_command *self = context;
    print_plan(document, style);
    if (self->passes)
        print_passes(document, style);
    if (self->kernels)
        print_kernels(document, style);
    if (self->part)
        print_ranks(document, style);
    if (self->steps)
        print_steps(self->part ? self->part->plan : self->transcript->plan, style);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"kernels", 0, OPTION_FLAG, NULL, KEPT_IN(struct inspect_command, kernels),
     "show which kernels would run the steps on a device, and why not others; nothing is run",
     .decides_device = true},
    {"device", 'd', OPTION_DEVICE, "SEL", KEPT_IN(struct command_job, selector),
     "the device to report on, selected as for healcl run", .decides_device = true},
    JOB_LIMITS,
    {"max-device-memory", 0, OPTION_BYTES, "SIZE", KEPT_IN(struct inspect_command, memory.limit),
     "print what a run transfers if it may allocate only SIZE on the device"},
    {"passes", 0, OPTION_FLAG, NULL, KEPT_IN(struct inspect_command, passes),
     "show each segment before and after passes: launches, bytes, work and memory; with --device "
     "also as --roofline does"},
    {"roofline", 0, OPTION_FLAG, NULL, KEPT_IN(struct inspect_command, roofline),
     "like --passes, with the time that a device's rates allow", .decides_device = true},
    {"steps", 0, OPTION_FLAG, NULL, KEPT_IN(struct inspect_command, steps),
     "list the steps after passes, with %storage+offset[shape : strides] and known ranges"},
    {"ranks", 0, OPTION_COUNT, "R", KEPT_IN(struct inspect_command, split.ranks),
     "show what each of R ranks of healcl-mpi run has: parts, exchanges, memory and time",
     .most = RANKS_MAX},
    {"split", 0, OPTION_WORD, "ENTRY:AXIS", KEPT_IN(struct inspect_command, axis_text),
     "the input and axis to split, as for healcl-mpi run"},
    JOB_OPTIONS,
};

static int prepare(const struct command *command, void *context)
{
    struct inspect_command *self = context;
    self->roofline |= self->passes && self->job.selector;
    self->passes |= self->roofline;
    if (self->job.selector && !self->kernels && !self->passes)
        return usage_error(command, "--device needs --kernels, --passes or --roofline");
    if (self->axis_text && self->split.ranks == 0)
        return usage_error(command, "--split needs --ranks");
    return GOES_ON;
}

static void release_inspect(void *context)
{
    struct inspect_command *self = context;
    healcl_transcript_close(self->part);
    healcl_transcript_close(self->transcript);
}

const struct command command_inspect = {
    .name = "inspect",
    .summary = "check a transcript and show what it holds",
    .help = "Checks a transcript as a run would, and prints its segments, operations, tensors, the "
            "bytes that are uploaded and downloaded, and the peak memory of its tensors.",
    .notes = "Exit codes: 0, 2 wrong usage, 3 the transcript is refused, 4 out of memory, or the "
             "device of --kernels or --roofline failed.\n\nPasses, in their order:"
#define PASS(name, summary) "\n" #name ": " summary
#include "plan/passes.def"
#undef PASS
    ,
    .options = options,
    .operands = OPERANDS_FILE,
    .size = sizeof(struct inspect_command),
    .steps = {.prepare = prepare,
              .work = open_all,
              .report = report_inspect,
              .print = print_inspect,
              .release = release_inspect},
};
