/*
 * Fuzzes the planner with all passes. An input is a transcript, or else bytes that choose a program
 * (program.h), which may end with a call that is refused.
 *
 * Accepted inputs are planned without passes, and with all or one of them. Each plan is then asked
 * for its memory under several limits, places, costs, and the kernels that serve its steps on
 * devices of each style. Two requests together are planned too.
 */
#include "program.h"

#include "kernels/variant.h"
#include "plan/memory.h"
#include "plan/passes.h"
#include "plan/places.h"
#include "run/loaded_transcript.h"

/* ---------------------------------------------------------------- what follows from a plan */

/* Each step has a kernel, whatever device it is for. */
static void ask_for_kernels(const struct plan *plan)
{
    static struct healcl_device devices[STYLE_COUNT];
    for (int shape = 0; shape < STYLE_COUNT; shape++) {
        struct healcl_device *device = &devices[shape];
        struct healcl_error error = {.detail = NULL};
        device->info = (struct device_info){.type = CL_DEVICE_TYPE_GPU,
                                            .max_work_group_size = 256,
                                            .max_parameter_bytes = 1024,
                                            .local_memory_bytes = 32768,
                                            .max_allocation_bytes = shape % 2 ? 4096 : 1 << 30,
                                            .global_memory_bytes = UINT64_C(1) << 32,
                                            .compute_units = 4,
                                            .little_endian = true,
                                            .double_width = shape % 2 ? 4 : 0};
        device->tuning = tuning_default(&device->info);
        EXPECT(tuning_parse(&device->tuning, kernel_style_name((enum kernel_style)shape), "a shape",
                            &device->info, &error) == HEALCL_OK);
        for (size_t i = 0; i < plan->step_count; i++)
            if (family_of(plan->steps[i].kind))
                EXPECT(variant_for(&plan->steps[i], device));
    }
}

static void ask_for_memory(const struct plan *plan)
{
    struct healcl_error error = {.detail = NULL};
    const struct places_rule rule = {.least = 16};
    struct memory_price price;
    struct places places;
    const struct step *step;
    uint64_t peak, least = memory_least(plan, UINT64_MAX, &step);
    for (uint64_t limit = least; limit < 3 * least; limit += least / 2 + 1) {
        EXPECT(memory_predict(plan, limit, &price, &peak, &error) == HEALCL_OK);
        EXPECT(peak <= limit || limit == 0);
    }
    if (least > 1) {
        expect_told(memory_predict(plan, least - 1, &price, &peak, &error), &error);
        EXPECT(error.status == HEALCL_REFUSED);
    }
    healcl_error_clear(&error);
    EXPECT(places_init(&places, plan, &rule, &error) == HEALCL_OK);
    EXPECT(places.place_bytes + places.other_bytes >= places.live_bytes);
    places_release(&places);
}

/* Passes take nothing away that can be noticed. */
static void compare(const struct plan *plan, const struct plan *without)
{
    EXPECT(plan->results == without->results && plan->uploads == without->uploads);
    EXPECT(plan->operations == without->operations && plan->expected == without->expected);
    EXPECT(plan->segment_count == without->segment_count);
    EXPECT(plan->bytes_up == without->bytes_up && plan->bytes_down == without->bytes_down);
}

/* ---------------------------------------------------------------- inputs */

/* Two requests together: all views lie in their storages. */
static void widen(const struct source *source, const struct healcl_plan_options *options)
{
    struct healcl_error error = {.detail = NULL};
    struct healcl_transcript *transcript = NULL, *wide = NULL;
    EXPECT(healcl_transcript_open_memory(source->text, source->length, options, &transcript,
                                         &error) == HEALCL_OK);
    const size_t uploads = transcript->plan->uploads;
    const size_t input = uploads > 0 ? source->length % uploads : 0;
    enum healcl_status status =
        healcl_transcript_widen(transcript, &input, uploads > 0, 2, &wide, &error);
    expect_told(status, &error);
    for (size_t i = 0; status == HEALCL_OK && i < wide->plan->step_count; i++)
        for (int j = 0; j < STEP_OPERANDS; j++) {
            const struct tensor *tensor = wide->plan->steps[i].operands[j];
            if (tensor && layout_elements(&tensor->layout) > 0)
                EXPECT(layout_last(&tensor->layout) < tensor->storage->elements);
        }
    if (status == HEALCL_OK) {
        ask_for_memory(wide->plan);
        ask_for_kernels(wide->plan);
    }
    healcl_error_clear(&error);
    healcl_transcript_close(wide);
    healcl_transcript_close(transcript);
}

static void plan_text(const struct source *source, const struct program *program,
                      const struct healcl_plan_options *options)
{
    struct healcl_error error = {.detail = NULL};
    struct plan *without = NULL, *plan = NULL;
    enum healcl_status status =
        plan_create(source, operations_of_options(options), options, &without, &error);
    expect_told(status, &error);
    if (status != HEALCL_OK) {
        if (program)
            program_expect_refusal(program, error.message);
        healcl_error_clear(&error);
        return;
    }
    const uint32_t one = (uint32_t)(source->length % (2 * PASS_COUNT));
    EXPECT(plan_create(source, operations_of_options(options), options, &plan, &error) ==
           HEALCL_OK);
    EXPECT(plan_optimise(plan, one < PASS_COUNT ? 1u << one : PASSES_ALL, &error) == HEALCL_OK);
    compare(plan, without);
    ask_for_memory(plan);
    ask_for_kernels(plan);
    plan_free(plan);
    plan_free(without);
    widen(source, options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct healcl_plan_options options = {.memory_limit = 1 << 24, .work_limit = 1 << 24},
                                     of_program = {.passes = NULL};
    struct program program;
    struct source source = {.text = (const char *)data, .length = size};
    if (size == 0)
        return 0;
    if (data[0] == '[' || data[0] == '{') {
        plan_text(&source, NULL, &options);
        return 0;
    }
    program_make(&program, data, size, true, NULL);
    source = (struct source){.text = program.writer.bytes, .length = program.writer.length};
    if (program.entries > 0)
        plan_text(&source, &program, &of_program);
    program_release(&program);
    return 0;
}
