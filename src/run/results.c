#include "run/results.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/new_file.h"
#include "run/compare.h"
#include "transcript/npy.h"

struct results {
    const struct plan *plan;
    const struct healcl_run_options *options;
    const struct segment *segment;
    cJSON *list; /* list of files; NULL without a directory, and after the first repetition */
    uint32_t repetition;      /* from 1 */
    size_t next;              /* number of the next result in this repetition */
    struct comparison pieces; /* of the current result, so far */
    uint8_t *outcomes;        /* by result, over all repetitions: enum outcome */
};

/* What is known of a result. A later one in this order replaces an earlier one. */
enum outcome { NOT_COMPARED, EQUAL, DIFFERENT };

/* ---------------------------------------------------------------- files */

/* Results as files. Each result is DIR/entry_000208_NAME.npy: format 1.0 of NumPy's
 * numpy.lib.format, in C order and little-endian. DIR/results.json lists them. The list is written
 * last: if it exists, all results exist. */
enum {
    NAME_MAX_KEPT = 40,  /* characters of a tensor's name in a file name */
    FILE_NAME_SIZE = 96, /* "entry_NUMBER_NAME.npy" */
    PATH_SIZE = PATH_MAX + FILE_NAME_SIZE
};

/* Prepares the folder for results: creates it if necessary, and removes an old results.json. A list
 * is thus never beside results of another run. */
static enum healcl_status dump_open(struct results *results, struct healcl_error *error)
{
    const char *directory = results->options->dump_dir;
    char path[PATH_SIZE];
    struct stat info;
    int code = mkdir(directory, 0777) == 0 ? 0 : errno;
    if (code == EEXIST && stat(directory, &info) == 0)
        code = S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    if (code != 0)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "cannot write to '%.480s': %s", directory,
                 strerror(code));
    snprintf(path, sizeof path, "%s/results.json", directory);
    TRY(new_file_check(path, error));
    if (unlink(path) != 0 && errno != ENOENT)
        FAIL(error, HEALCL_USAGE, "cannot replace '%.480s': %s", path, strerror(errno));
    results->list = cJSON_CreateArray();
    NEED_MEMORY(results->list, error);
    return HEALCL_OK;
}

/* Writes "entry_000208_NAME.npy", a file name for a result. Of the tensor's name only letters,
 * digits and '-' stay; quotes are dropped, other characters become '_'. */
static void file_name(const struct step *step, char name[FILE_NAME_SIZE])
{
    char safe_name[NAME_MAX_KEPT + 1];
    size_t length = 0;
    for (const char *c = step->tensor_name; *c && length < NAME_MAX_KEPT; c++)
        if (*c != '"')
            safe_name[length++] = isalnum((unsigned char)*c) || *c == '-' ? *c : '_';
    safe_name[length] = 0;
    snprintf(name, FILE_NAME_SIZE, "entry_%06zu%s%s.npy", step_origin(step, NO_INPUT)->entry,
             length ? "_" : "", safe_name);
}

/* Whether a result is compared with the tensor that the file expects. */
static bool compares_result(const struct results *results, const struct step *step)
{
    return step->payload && !results->options->no_verify;
}

/* Adds the member "shape" to an object of the list: a size for each axis. Returns false if memory
 * runs out. Sizes are raw text: cJSON would make them doubles. */
static bool list_shape(cJSON *item, const struct layout *layout)
{
    cJSON *shape = cJSON_AddArrayToObject(item, "shape");
    bool is_complete = shape != NULL;
    for (uint32_t axis = 0; is_complete && axis < layout->rank; axis++) {
        char size[24];
        snprintf(size, sizeof size, "%" PRId64, layout->shape[axis]);
        is_complete = cJSON_AddItemToArray(shape, cJSON_CreateRaw(size));
    }
    return is_complete;
}

/* Adds a result to the list that becomes results.json: where it comes from, its file, shape and
 * dtype, and whether its data are right (null if they are not compared). */
static enum healcl_status list_result(struct results *results, const struct step *step,
                                      const char *file, struct healcl_error *error)
{
    const struct tensor *tensor = step->in[0];
    char entry[24];
    snprintf(entry, sizeof entry, "%zu", step_origin(step, NO_INPUT)->entry);
    cJSON *item = cJSON_CreateObject();
    NEED_MEMORY(cJSON_AddItemToArray(results->list, item), error);
    const bool is_complete =
        cJSON_AddRawToObject(item, "entry", entry) &&
        cJSON_AddStringToObject(item, "tensor", step->tensor_name) &&
        cJSON_AddStringToObject(item, "file", file) && list_shape(item, &tensor->layout) &&
        cJSON_AddStringToObject(item, "dtype", dtype_name(tensor->storage->dtype)) &&
        cJSON_AddStringToObject(item, "segment", results->segment->name);
    NEED_MEMORY(is_complete, error);
    const bool is_right = comparison_is_equal(&results->pieces);
    NEED_MEMORY(compares_result(results, step) ? cJSON_AddBoolToObject(item, "verified", is_right)
                                               : cJSON_AddNullToObject(item, "verified"),
                error);
    return HEALCL_OK;
}

/* Writes a result to its file and adds it to the list. data: the elements of step->in[0], packed,
 * in C order. */
static enum healcl_status dump_result(struct results *results, const struct step *step,
                                      const void *data, struct healcl_error *error)
{
    const struct tensor *tensor = step->in[0];
    char name[FILE_NAME_SIZE], path[PATH_SIZE];
    file_name(step, name);
    snprintf(path, sizeof path, "%s/%s", results->options->dump_dir, name);
    TRY(npy_write_file(path, tensor->storage->dtype, &tensor->layout, data, error));
    return list_result(results, step, name, error);
}

/* Writes the list of results, after the last result: if the list exists, all files do. */
static enum healcl_status dump_finish(struct results *results, struct healcl_error *error)
{
    char path[PATH_SIZE], *text = cJSON_Print(results->list);
    struct new_file file;
    NEED_MEMORY(text, error);
    snprintf(path, sizeof path, "%s/results.json", results->options->dump_dir);
    enum healcl_status status = new_file_open(&file, path, error);
    if (status == HEALCL_OK) {
        fprintf(file.stream, "%s\n", text);
        status = new_file_commit(&file, error);
    }
    cJSON_free(text);
    return status;
}

/* ---------------------------------------------------------------- life */

/* Prepares the comparison of a run's results, and the folder for their files. The file's data are
 * kept mapped as long as results may be compared (source_hold). */
enum healcl_status results_create(const struct plan *plan, const struct healcl_run_options *options,
                                  struct results **result, struct healcl_error *error)
{
    struct results *results = source_hold(plan->source, true) ? calloc(1, sizeof *results) : NULL;
    NEED_MEMORY(results, error);
    results->plan = plan;
    results->options = options;
    results->repetition = 1;
    results->outcomes = calloc(plan->results + 1, sizeof *results->outcomes);
    enum healcl_status status = HEALCL_OK;
    if (!results->outcomes)
        status = ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    if (status == HEALCL_OK && options->dump_dir)
        status = dump_open(results, error);
    if (status != HEALCL_OK) {
        results_free(results);
        return status;
    }
    *result = results;
    return HEALCL_OK;
}

/* Frees the results. The transcript's file need not stay mapped any longer (source_hold). */
void results_free(struct results *results)
{
    if (!results)
        return;
    (void)source_hold(results->plan->source, false);
    cJSON_Delete(results->list);
    free(results->outcomes);
    free(results);
}

/* Reports to the observer how many steps of the segment are done. */
static void report_progress(const struct results *results, size_t done)
{
    const struct healcl_observer *observer = &results->options->observer;
    const struct segment *segment = results->segment;
    if (observer->progress)
        observer->progress(observer->context, (size_t)(segment - results->plan->segments),
                           results->plan->segment_count, segment->name, done, segment->step_count);
}

void results_start_segment(struct results *results, const struct segment *segment)
{
    results->segment = segment;
    report_progress(results, 0);
}

/* Ends a repetition. Only the first one writes files: the list is written and freed, and later
 * results find none. */
enum healcl_status results_end_repetition(struct results *results, struct healcl_error *error)
{
    enum healcl_status status = HEALCL_OK;
    if (results->list)
        status = dump_finish(results, error);
    cJSON_Delete(results->list);
    results->list = NULL;
    results->repetition++;
    results->next = 0;
    return status;
}

/* ---------------------------------------------------------------- differences */

/* Passes one line about a difference to the observer. */
static void report_line(const struct results *results, const char *line)
{
    const struct healcl_observer *observer = &results->options->observer;
    if (observer->difference)
        observer->difference(observer->context, line);
}

/* Reports the first values of a result that differ, a line for each, and how many more do. */
static void report_values(const struct results *results, const struct layout *layout,
                          const struct comparison *comparison)
{
    char line[512], index[SHAPE_TEXT_SIZE];
    for (uint32_t i = 0; i < comparison->first_count; i++) {
        snprintf(line, sizeof line, "  %s: %" PRId64 ", expected %" PRId64,
                 layout_index_text(layout, comparison->first[i].position, index),
                 comparison->first[i].actual, comparison->first[i].expected);
        report_line(results, line);
    }
    if (comparison->different > comparison->first_count) {
        snprintf(line, sizeof line, "  and %" PRIu64 " more",
                 comparison->different - comparison->first_count);
        report_line(results, line);
    }
}

/* Reports a result that differs: "entry 8 (device_to_host): tensor 200 of shape 8: 2 of 8 values
 * differ", and the first of these values; or that its shape is another one. */
static void report_difference(const struct results *results, const struct step *step,
                              const struct comparison *comparison)
{
    const struct layout *actual = &step->in[0]->layout, *expected = &step->payload->layout;
    const struct origin *origin = step_origin(step, NO_INPUT);
    char line[512], repetition[32] = "";
    char actual_shape[SHAPE_TEXT_SIZE], expected_shape[SHAPE_TEXT_SIZE];
    layout_shape_text(actual, actual_shape);
    layout_shape_text(expected, expected_shape);
    if (results->repetition > 1)
        snprintf(repetition, sizeof repetition, "repetition %" PRIu32 ": ", results->repetition);
    const size_t used =
        (size_t)snprintf(line, sizeof line, "%sentry %zu (%.80s): tensor %.80s", repetition,
                         origin->entry, origin->name, step->tensor_name);
    if (!comparison->same_shape) {
        snprintf(line + used, sizeof line - used, ": shape %s, expected %s", actual_shape,
                 expected_shape);
        report_line(results, line);
        return;
    }
    const uint64_t elements = (uint64_t)layout_elements(actual);
    snprintf(line + used, sizeof line - used, " of shape %s: %" PRIu64 " of %" PRIu64 " value%s %s",
             actual_shape, comparison->different, elements, elements == 1 ? "" : "s",
             comparison->different == 1 ? "differs" : "differ");
    report_line(results, line);
    report_values(results, actual, comparison);
}

/* ---------------------------------------------------------------- the sink */

/* Notes the outcome of a comparison. A difference is reported once, in the first repetition that
 * has it: it would usually occur in every repetition. Before that, checks that the file has not
 * changed. */
static enum healcl_status note_compared(struct results *results, const struct step *step,
                                        const struct comparison *comparison,
                                        struct healcl_error *error)
{
    uint8_t *outcome = &results->outcomes[results->next];
    if (*outcome == NOT_COMPARED)
        *outcome = EQUAL;
    if (comparison_is_equal(comparison))
        return HEALCL_OK;
    TRY(source_check(results->plan->source, error));
    if (*outcome != DIFFERENT)
        report_difference(results, step, comparison);
    *outcome = DIFFERENT;
    return HEALCL_OK;
}

/* A sink for pieces, perhaps the whole: each is compared while the next one is transferred. The
 * differences of all pieces are collected in results->pieces. The last one ends the result, and
 * reports to the observer how many steps of the segment are done. */
static enum healcl_status results_take_piece(void *context, const struct step *step, int64_t first,
                                             int64_t count, const void *data,
                                             struct healcl_error *error)
{
    struct results *results = context;
    struct comparison *pieces = &results->pieces;
    const struct tensor *tensor = step->in[0];
    const bool compares = compares_result(results, step);
    if (compares)
        TRY(source_check_size(results->plan->source, error));
    if (compares && first == 0)
        *pieces =
            (struct comparison){.same_shape = compare_same_shape(&tensor->layout, step->payload)};
    if (compares && pieces->same_shape)
        TRY(compare_piece(tensor->storage->dtype, first, count, data, step->payload, pieces,
                          error));
    if (first + count < layout_elements(&tensor->layout))
        return HEALCL_OK;
    if (compares)
        TRY(note_compared(results, step, pieces, error));
    results->next++;
    const size_t number = (size_t)(step - results->plan->steps);
    report_progress(results, number - results->segment->first_step + 1);
    return HEALCL_OK;
}

/* A sink for whole results, which are also written to files. */
static enum healcl_status results_take_whole(void *context, const struct step *step,
                                             const void *data, struct healcl_error *error)
{
    struct results *results = context;
    const int64_t elements = layout_elements(&step->in[0]->layout);
    TRY(results_take_piece(results, step, 0, elements, data, error));
    return dump_result(results, step, data, error);
}

/* Whether the data of a result are needed. A result whose shape is not the expected one is wrong,
 * whatever its data are. */
static bool wants_data(void *context, const struct step *step)
{
    const struct results *results = context;
    return results->list || !compares_result(results, step) ||
           compare_same_shape(&step->in[0]->layout, step->payload);
}

/* The functions by which an executor hands results to this comparison. Files need whole results;
 * otherwise large ones come in pieces. */
struct result_sink results_sink(struct results *results)
{
    return (struct result_sink){.context = results,
                                .take = results->list ? results_take_whole : NULL,
                                .wants_data = wants_data,
                                .take_piece = results_take_piece};
}

/* Fills in the report's numbers of results, compared results and different results. One difference
 * makes the whole run differ. */
void results_report(const struct results *results, struct healcl_report *report)
{
    size_t next = 0;
    for (size_t i = 0; i < report->segment_count; i++) {
        struct healcl_segment_profile *segment = &report->segments[i];
        segment->results = results->plan->segments[i].results;
        for (size_t j = 0; j < segment->results; j++, next++) {
            segment->results_compared += results->outcomes[next] != NOT_COMPARED;
            segment->results_different += results->outcomes[next] == DIFFERENT;
        }
        report->results += segment->results;
        report->results_compared += segment->results_compared;
        report->results_different += segment->results_different;
    }
    report->verdict = report->results_different > 0  ? HEALCL_DIFFERS
                      : report->results_compared > 0 ? HEALCL_VERIFIED
                                                     : HEALCL_NOTHING_TO_VERIFY;
}
