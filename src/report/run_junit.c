/* A run as JUnit XML: a case for each segment, which fails where one of its results differs. */
#include <inttypes.h>

#include "report/junit.h"
#include "report/text.h"

static void put_differences(struct junit *junit, const struct run_facts *facts, size_t segment)
{
    for (size_t i = 0; i < facts->difference_count; i++)
        if (facts->differences[i].segment == segment)
            junit_line(junit, "%s", facts->differences[i].line);
}

static void put_segment(struct junit *junit, const struct run_facts *facts, size_t index)
{
    const struct healcl_segment_profile *segment = &facts->report->segments[index];
    char text[160];
    snprintf(text, sizeof text, "segment %zu: %.100s", index + 1, segment_title(segment->name));
    junit_case(junit, text, segment->nanoseconds);
    if (segment->results_different > 0) {
        snprintf(text, sizeof text, "%" PRIu64 " of %" PRIu64 " result%s differ%s",
                 segment->results_different, segment->results, segment->results == 1 ? "" : "s",
                 segment->results_different == 1 ? "s" : "");
        junit_outcome(junit, JUNIT_FAILURE, "different", text);
        put_differences(junit, facts, index);
    } else if (segment->results > 0 && segment->results_compared == 0) {
        junit_outcome(junit, JUNIT_SKIPPED, "nothing to verify",
                      facts->no_verify ? "results are not compared: --no-verify"
                                       : "no result carries an expected tensor");
    } else if (segment->results > 0) {
        junit_line(junit, "verified: %" PRIu64 " of %" PRIu64 " result%s",
                   segment->results_compared, segment->results, segment->results == 1 ? "" : "s");
    }
}

enum healcl_status report_run_junit(const struct run_facts *facts, FILE *stream)
{
    struct junit junit;
    char name[sizeof facts->device->name + 32];
    snprintf(name, sizeof name, "healcl run on %s",
             facts->device ? facts->device->name : "host reference");
    junit_init(&junit, name);
    junit_suite(&junit, facts->file);
    for (size_t i = 0; i < facts->report->segment_count; i++)
        put_segment(&junit, facts, i);
    return junit_print(&junit, stream);
}

enum healcl_status report_error_junit(const char *file, const struct healcl_error *error,
                                      FILE *stream)
{
    struct junit junit;
    junit_init(&junit, "healcl");
    junit_suite(&junit, file ? file : "healcl");
    junit_case(&junit, healcl_status_name(error->status), 0);
    junit_outcome(&junit, error->status == HEALCL_DIFFERENT ? JUNIT_FAILURE : JUNIT_ERROR,
                  healcl_status_name(error->status), error->message);
    if (error->detail)
        junit_line(&junit, "%s", error->detail);
    return junit_print(&junit, stream);
}
