/* What `healcl tune` prints. */
#ifndef HEALCL_REPORT_TUNE_H
#define HEALCL_REPORT_TUNE_H

#include "bench/tune.h"
#include "report/report.h"

/* What was measured, or is to be; and what has come of it. */
struct tune_facts {
    const struct device_info *device;
    const struct tune_report *report;
    bool measured;
    const char *kept;         /* the file that keeps the choice, or NULL */
    const char *kept_kernels; /* the same of kernels of manifests */
};

enum healcl_status report_tune(const struct tune_facts *facts, const struct style *style);
enum healcl_status report_tune_json(const struct tune_facts *facts, FILE *stream);

#endif
