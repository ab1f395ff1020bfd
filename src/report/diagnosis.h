/* What `healcl diagnose` found. */
#ifndef HEALCL_REPORT_DIAGNOSIS_H
#define HEALCL_REPORT_DIAGNOSIS_H

#include "check/diagnose.h"
#include "report/report.h"

struct diagnosis_facts {
    const char *file;
    const struct device_info *device;
    const char *self_test_failure; /* NULL: passed */
    const struct diagnosis *diagnosis;
    const struct healcl_operations *operations; /* of manifests, or NULL */
    const char *case_path;                      /* where the smallest case was written, or NULL */
};

cJSON *report_diagnosis(const struct diagnosis_facts *facts);
void report_diagnosis_text(const cJSON *document, enum diagnosis_kind kind,
                           const struct style *style);

#endif
