/* What `healcl bench` prints. */
#ifndef HEALCL_REPORT_BENCH_H
#define HEALCL_REPORT_BENCH_H

#include "bench/bench.h"
#include "report/report.h"

/* A table of cases and one of examples of manifests, where there are any, with the device above
 * them. */
enum healcl_status report_bench(const struct device_info *device,
                                const struct bench_result *results, size_t count,
                                const struct bench_example *examples, size_t example_count,
                                const struct style *style);
enum healcl_status report_bench_json(const struct device_info *device,
                                     const struct bench_result *results, size_t count,
                                     const struct bench_example *examples, size_t example_count,
                                     FILE *stream);

#endif
