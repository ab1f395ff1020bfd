/* Which kernels a run has launched, and what they took. */
#ifndef HEALCL_CLI_RUN_KERNELS_REPORT_H
#define HEALCL_CLI_RUN_KERNELS_REPORT_H

#include "cli/report.h"

/* A list of the kernels of a trace's last repetition: a row for launches that are alike, the
 * slowest first. */
cJSON *report_launches(const struct plan *plan, const struct trace *trace,
                       const struct roofline *roofline, const struct healcl_device *device);

#endif
