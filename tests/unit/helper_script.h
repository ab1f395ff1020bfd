/*
 * Transcripts written by tests, a line for each operation, and ways to run them:
 *
 *     struct script script = {0};
 *     script_upload(&script, "q", DTYPE_INT64, 1, (int64_t[]){2}, (int64_t[]){7, 11});
 *     script_call(&script, "out", "empty", "(3,2) :int64");
 *     script_call(&script, "out", "_modmul_ttt", "a a q out");
 *     script_download(&script, "out");
 *     script_plan(&script);
 *
 * Arguments are those of tools/writer.h.
 */
#ifndef HEALCL_TESTS_HELPER_SCRIPT_H
#define HEALCL_TESTS_HELPER_SCRIPT_H

#include "helper_declare.h"
#include "plan/plan.h"
#include "run/run.h"
#include "tools/writer.h"

struct script {
    const struct operation_table *operations; /* that it may name; NULL: the built-in ones */
    struct writer writer;
    struct source source;
    struct plan *plan; /* NULL until script_plan */
};

/* values: in C order; they must fit. */
void script_upload(struct script *script, const char *name, enum dtype dtype, uint32_t rank,
                   const int64_t *shape, const int64_t *values);

/* out: the result's name, or NULL for none. */
void script_call(struct script *script, const char *out, const char *operation,
                 const char *arguments);
void script_download(struct script *script, const char *name);
void script_free(struct script *script, const char *name);
void script_segment_start(struct script *script, const char *name);
void script_segment_end(struct script *script);

/* All of these by lines, which end with a semicolon: "a (2,3)" uploads int64, and "a (2,3) :int8"
 * another dtype, of values from 1 to 97; "b = abs a b" and "ntt ..." are calls; "get a", "free a",
 * "segment NAME" and "end" the rest. */
void script_lines(struct script *script, const char *lines);

/* Ends the text. */
void script_finish(struct script *script);

/* Parses a script and plans it; ends the program on failure. */
void script_plan(struct script *script);

/* Sets the arguments of missing inputs of a step, so that tests notice who reads them. */
void script_spoil(struct plan *plan);

/* Plans a file. */
enum healcl_status script_open(struct script *script, const char *path, struct healcl_error *error);
void script_release(struct script *script);

/* ---- running ---- */

/* All results of a run, one after another, as int64. */
struct script_results {
    int64_t *values;
    size_t count, capacity;
    size_t results;
};

struct result_sink script_sink(struct script_results *results);
void script_results_release(struct script_results *results);

/* All segments. Adds to results. */
enum healcl_status script_run(const struct script *script, struct executor *executor,
                              struct script_results *results, struct healcl_error *error);

/* Runs a script on an executor of its own. device: NULL for the host reference. */
enum healcl_status script_run_on(const struct script *script, struct healcl_device *device,
                                 struct script_results *results, struct healcl_error *error);

bool script_same_results(const struct script_results *a, const struct script_results *b);

#endif
