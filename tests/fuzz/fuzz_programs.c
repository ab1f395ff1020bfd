/*
 * Fuzzes whole programs (program.h) on a device against operations by call on the host
 * reference, and on the reference as transcripts. The first byte says how the device is shaped,
 * which passes are done, whether its memory is limited, and whether it gets the calls, too. Where
 * data are refused, the device has to refuse them in the same words.
 */
#include "device.h"
#include "program.h"

static void run(const struct program *program, const struct healcl_transcript *transcript,
                struct healcl_device *device, uint64_t memory)
{
    const struct healcl_run_options options = {.no_warm_up = true, .device_memory_bytes = memory};
    struct healcl_error error = {.detail = NULL};
    struct healcl_report *report = NULL;
    enum healcl_status status = healcl_run(transcript, device, &options, &report, &error);
    if (status != HEALCL_OK) {
        expect_told(status, &error);
        if (!memory || !strstr(error.message, "device memory"))
            program_expect_refusal(program, error.message);
    } else if (program->ended || report->verdict == HEALCL_DIFFERS ||
               report->results_compared != program->downloads) {
        fprintf(stderr, "%s\n%s: %d of %d results differ\n", program->writer.bytes,
                device ? "device" : "reference", (int)report->results_different,
                (int)program->downloads);
        abort();
    }
    healcl_report_free(report);
    healcl_error_clear(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct healcl_error error = {.detail = NULL};
    struct healcl_transcript *transcript = NULL;
    struct program program;
    if (size < 2)
        return 0;
    const struct healcl_plan_options options = {.passes = data[0] & 0x10 ? "none" : NULL};
    program_make(&program, data + 1, size - 1, false, data[0] & 0x40 ? fuzz_device(0) : NULL);
    if (program.entries > 0) {
        EXPECT(healcl_transcript_open_memory(program.writer.bytes, program.writer.length, &options,
                                             &transcript, &error) == HEALCL_OK);
        run(&program, transcript, NULL, 0);
        run(&program, transcript, fuzz_device(data[0] & 3), data[0] & 0x20 ? 1024 : 0);
    }
    healcl_transcript_close(transcript);
    program_release(&program);
    return 0;
}
