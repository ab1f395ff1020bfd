/* What `healcl diagnose` found. */
#ifndef HEALCL_CLI_DIAGNOSE_REPORT_H
#define HEALCL_CLI_DIAGNOSE_REPORT_H

#include "cli/report.h"
#include "tools/diagnose.h"

/* self_test_failure: NULL where it passed. manifests: may be NULL. case_path: where the
 * smallest case was written, or NULL. */
cJSON *report_diagnosis(const char *file, const struct device_info *device,
                        const char *self_test_failure, const struct diagnosis *diagnosis,
                        const struct healcl_operations *manifests, const char *case_path);
void report_diagnosis_text(const cJSON *document, enum diagnosis_kind kind,
                           const struct style *style);

#endif
