/* An executor's results are compared, reported and written to files here. */
#ifndef HEALCL_RUN_RESULTS_H
#define HEALCL_RUN_RESULTS_H

#include "run/run.h"

struct results;

/* plan and options outlive it. Makes options->dump_dir. */
enum healcl_status results_create(const struct plan *plan, const struct healcl_run_options *options,
                                  struct results **results, struct healcl_error *error);
void results_free(struct results *results);

/* The sink for the executor. */
struct result_sink results_sink(struct results *results);

/* The results that follow are of this segment, which begins. */
void results_start_segment(struct results *results, const struct segment *segment);

/* All results of one repetition are in; those that follow are of the next. */
enum healcl_status results_end_repetition(struct results *results, struct healcl_error *error);

/* Fills in what a report says of results. One that differed in any repetition counts as
 * different. */
void results_report(const struct results *results, struct healcl_report *report);

#endif
