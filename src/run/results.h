/* Compares an executor's results, reports them and writes them to files. */
#ifndef HEALCL_RUN_RESULTS_H
#define HEALCL_RUN_RESULTS_H

#include "run/run.h"

struct results;

/* plan and options must outlive it. Creates options->dump_dir. */
enum healcl_status results_create(const struct plan *plan, const struct healcl_run_options *options,
                                  struct results **results, struct healcl_error *error);
void results_free(struct results *results);

/* The sink for the executor. */
struct result_sink results_sink(struct results *results);

/* Begins a segment; the following results belong to it. */
void results_start_segment(struct results *results, const struct segment *segment);

/* Ends a repetition; the following results belong to the next one. */
enum healcl_status results_end_repetition(struct results *results, struct healcl_error *error);

/* Fills in the report's facts about results. A result that differed in any repetition counts as
 * different. */
void results_report(const struct results *results, struct healcl_report *report);

#endif
