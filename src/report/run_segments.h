/* What reports and comparisons of runs share. */
#ifndef HEALCL_REPORT_RUN_SEGMENTS_H
#define HEALCL_REPORT_RUN_SEGMENTS_H

#include "report/columns.h"
#include "report/report.h"

/* A segment, several of them, or a time that is of none. */
struct segment_row {
    struct healcl_segment_profile of;
    uint64_t roofline; /* nanoseconds that the device's rates allow */
    bool has_roofline, is_time;
};

struct segment_row report_segment_row(const struct run_facts *facts, size_t segment);

/* Of struct segment_row, without a context. */
extern const struct column_table report_segment_columns;

/* Of struct healcl_manifest_kernel, without a context. */
extern const struct column_table report_kernel_columns;

#endif
