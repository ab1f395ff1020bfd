/* Exchanges at the end of a split plan's segments: sums of which each rank has a summand. */
#ifndef HEALCL_RUN_EXCHANGE_H
#define HEALCL_RUN_EXCHANGE_H

#include "run/run.h"

/* Has `exchange` of the options make the sums of a segment, which has ended, whole. device: the
 * executor's, or NULL. */
enum healcl_status exchange_segment(struct executor *executor, struct healcl_device *device,
                                    const struct plan *plan, size_t segment,
                                    const struct healcl_session_options *options,
                                    struct healcl_error *error);

#endif
