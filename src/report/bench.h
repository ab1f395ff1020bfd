/* What `healcl bench` prints. */
#ifndef HEALCL_REPORT_BENCH_H
#define HEALCL_REPORT_BENCH_H

#include "lab/bench.h"
#include "report/report.h"

/* A table, with the device above it. */
MUST_CHECK enum healcl_status report_bench(const struct device_info *device,
                                           const struct bench_result *results, size_t count,
                                           const struct style *style);
MUST_CHECK enum healcl_status report_bench_json(const struct device_info *device,
                                                const struct bench_result *results, size_t count,
                                                FILE *stream);

#endif
