/* What `healcl bench` reports. */
#ifndef HEALCL_CLI_BENCH_REPORT_H
#define HEALCL_CLI_BENCH_REPORT_H

#include "cli/report.h"
#include "tools/bench.h"

/* Cases, and examples of manifests. */
cJSON *report_bench(const struct device_info *device, const struct bench_result *results,
                    size_t count, const struct bench_example *examples, size_t example_count);
void report_bench_text(const cJSON *document, const struct style *style);

#endif
