/*
 * Fuzzes what healcl compare reads: what child processes write, and saved comparisons, on which it
 * then concludes. The first byte says what reads the rest, and how the process ended.
 */
#define _GNU_SOURCE
#include "comparison.h"

static void add_run(struct comparison *comparison, struct compare_run **run)
{
    struct healcl_error error = {.detail = NULL};
    EXPECT(comparison_add_run(comparison, 0, 0, run, &error) == HEALCL_OK);
    (*run)->command = "";
}

enum reader { DEVICES, RATES, CHECK, RUN, FIRST, BASELINE, READERS };

static void read_as(struct comparison *comparison, enum reader reader,
                    const struct process_result *process)
{
    struct healcl_error error = {.detail = NULL};
    struct compare_run *run;
    size_t added = 0;
    switch (reader) {
    case DEVICES:
        expect_read(compare_read_devices(comparison, process->text, false, &error), &error);
        break;
    case RATES: compare_read_rates(comparison, &comparison->devices[0], process->text); break;
    case CHECK:
        EXPECT(compare_read_check(comparison, &comparison->devices[0], process, &error) ==
               HEALCL_OK);
        break;
    case RUN:
        add_run(comparison, &run);
        EXPECT(compare_read_run(comparison, run, process, &error) == HEALCL_OK);
        break;
    case FIRST:
        add_run(comparison, &run);
        compare_read_first(comparison, &run->cold, process);
        break;
    case BASELINE:
        expect_read(compare_read_baseline(comparison, file_of(process->text, process->size), &added,
                                          &error),
                    &error);
        EXPECT(added <= comparison->run_count);
        break;
    case READERS: EXPECT(false);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct comparison comparison;
    struct compare_device *device;
    struct healcl_error error = {.detail = NULL};
    char *text = text_of(data + 1, size - 1);
    const struct process_result process = {.end = (enum process_end)(data[0] / READERS & 3),
                                           .code = data[0] / READERS / 4 & 3,
                                           .is_own = !(data[0] / READERS / 16 & 1),
                                           .text = text,
                                           .size = size - 1,
                                           .last_line = "a last line"};
    begin(&comparison);
    EXPECT(comparison_add_device(&comparison, &device, &error) == HEALCL_OK);
    read_as(&comparison, (enum reader)(data[0] % READERS), &process);
    compare_conclude(&comparison);
    comparison_release(&comparison);
    free(text);
    return 0;
}
