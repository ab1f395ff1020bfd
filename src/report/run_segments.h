/* As src/compare reads it. */
#ifndef HEALCL_REPORT_RUN_SEGMENTS_H
#define HEALCL_REPORT_RUN_SEGMENTS_H

#include "report/columns.h"

/* Of struct healcl_manifest_kernel, without a context. */
extern const struct column_table report_kernel_columns;

#endif
