/*
 * Fuzzes what healcl compare reads: what child processes write, and saved comparisons, on which it
 * then concludes. The first byte says what reads the rest, and how the process ended.
 */
#define _GNU_SOURCE
#include "comparison.h"

enum reader { DEVICES, RATES, RUN, BASELINE, READERS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct comparison comparison;
    char *text = text_of(data + 1, size - 1);
    const struct process_result process = {.end = (enum process_end)(data[0] / READERS & 3),
                                           .code = data[0] / READERS / 4 & 3,
                                           .is_own = !(data[0] / READERS / 16 & 1),
                                           .text = text,
                                           .size = size - 1,
                                           .last_line = "a last line"};
    begin(&comparison);
    cJSON *device = compare_add_device(&comparison, NULL);
    switch ((enum reader)(data[0] % READERS)) {
    case DEVICES: (void)compare_add_devices(&comparison, text, false); break;
    case RATES: compare_take_rates(device, text); break;
    case RUN: compare_take_run(&comparison, compare_add_run(&comparison, 0, 0), &process); break;
    case BASELINE: add_baseline(&comparison, text, size - 1); break;
    case READERS: EXPECT(false);
    }
    compare_conclude(&comparison);
    comparison_release(&comparison);
    free(text);
    return 0;
}
