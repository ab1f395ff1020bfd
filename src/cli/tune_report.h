/* What `healcl tune` reports. */
#ifndef HEALCL_CLI_TUNE_REPORT_H
#define HEALCL_CLI_TUNE_REPORT_H

#include "cli/report.h"
#include "tools/tune.h"

/* What was measured, or is to be; and what has come of it. kept: the file that keeps the choice, or
 * NULL; kept_kernels: the same of kernels of manifests. */
cJSON *report_tune(const struct device_info *device, const struct tune_report *report,
                   bool measured, const char *kept, const char *kept_kernels);
void report_tune_text(const cJSON *document, const struct style *style);

#endif
