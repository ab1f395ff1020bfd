/* Which kernels a run has launched, and what they took. */
#ifndef HEALCL_REPORT_RUN_KERNELS_H
#define HEALCL_REPORT_RUN_KERNELS_H

#include "report/columns.h"
#include "report/report.h"

/* Launches that are alike. */
struct kernel_row {
    const char *kernel;      /* its name */
    const char *step;        /* kind of the steps that it serves, also by tables; or "" */
    const char *variant;     /* of the step's family, or a manifest's; "": of none */
    const char *why_general; /* a better variant cannot, where a general one ran; else "" */
    uint64_t groups;
    uint32_t local_size;
    uint64_t launches, nanoseconds;
    double bytes;    /* that their steps read and write; 0: unknown */
    double roofline; /* nanoseconds that rates allow for their steps; 0: unknown */
};

/* Freed with free(of). */
struct kernel_rows {
    struct kernel_row *of;
    size_t count, capacity;
};

/* Adds up the kernels of a trace's last repetition, the slowest first. Texts are those of the plan,
 * the trace and the device's kernels. Errors: HEALCL_NO_MEMORY. */
enum healcl_status kernel_rows_of(const struct plan *plan, const struct trace *trace,
                                  const struct roofline *roofline,
                                  const struct healcl_device *device, struct kernel_rows *rows,
                                  struct healcl_error *error);

/* Of struct kernel_row, without a context. */
extern const struct column_table kernel_row_columns;

/* "63 %", or above 100 % "100 %, in cache"; returns text. */
const char *text_roofline(double allowed, double nanoseconds, char text[COLUMN_TEXT_SIZE]);

#endif
