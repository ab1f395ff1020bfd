/* A comparison as CSV (RFC 4180), a line for each run. */
#include <inttypes.h>

#include "report/compare.h"

static void put_text(FILE *stream, const char *text)
{
    putc('"', stream);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', stream);
        putc(*text, stream);
    }
    fputs("\",", stream);
}

static void put_line(const struct comparison *comparison, const struct compare_run *run,
                     FILE *stream)
{
    const struct compare_device *device = &comparison->devices[run->device];
    struct compare_times times = {.median = 0};
    struct compare_speedup speedup = {.factor = 0};
    double overhead;
    put_text(stream, comparison->transcripts[run->transcript].file);
    put_text(stream, device->selector);
    put_text(stream, device->name);
    put_text(stream, device->platform);
    put_text(stream, device->driver);
    put_text(stream, device->origin->baseline ? device->origin->baseline : "");
    put_text(stream, compare_outcome_name(run->outcome));
    put_text(stream, run->message);
    fprintf(stream, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%zu,", run->results, run->compared,
            run->different, run->sample_count);
    if (compare_times_of(run, &times))
        fprintf(stream, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
                times.median, times.low, times.high, times.least, times.most);
    else
        fputs(",,,,,", stream);
    if (compare_speedup_of(comparison, run, &speedup))
        fprintf(stream, "%.6g,%.6g,%.6g,", speedup.factor, speedup.low, speedup.high);
    else
        fputs(",,,", stream);
    fprintf(stream, "%s,",
            run->profiled_count == 0  ? ""
            : run->operations_by_host ? "host"
                                      : "device");
    if (compare_overhead_of(run, &overhead))
        fprintf(stream, "%.6g", overhead);
    fprintf(stream, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\r\n",
            run->open_device_nanoseconds, run->open_transcript_nanoseconds,
            run->compile_nanoseconds, run->process_nanoseconds, run->device_bytes, run->host_bytes);
}

enum healcl_status compare_print_csv(const struct comparison *comparison, FILE *stream)
{
    fputs("transcript,index,device,platform,driver,baseline,outcome,message,results,compared,"
          "different,samples,median_ns,low_ns,high_ns,least_ns,most_ns,speedup,speedup_low,"
          "speedup_high,profile_clock,profile_overhead,open_device_ns,open_transcript_ns,compile_"
          "ns,process_ns,"
          "device_memory_peak,host_memory_peak\r\n",
          stream);
    for (size_t i = 0; i < comparison->run_count; i++)
        put_line(comparison, &comparison->runs[i], stream);
    return HEALCL_OK;
}
