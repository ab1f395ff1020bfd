/* healcl-mpi run */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/requests.h"
#include "core/numbers.h"
#include "mpi/commands.h"
#include "mpi/opening.h"
#include "mpi/reduce.h"
#include "mpi/run_report.h"
#include "plan/split.h"
#include "plan/transcript.h"
#include "tools/xmalloc.h"

enum { REPEAT_MAX = 1000000 };

/* One `healcl-mpi run`. */
struct run_ranks_command {
    struct opening opening;
    uint32_t repeat;
    const char *axis_text; /* "ENTRY:AXIS", or NULL */

    struct ranks ranks;
    struct healcl_split split;
    struct healcl_transcript *part;
    struct healcl_session *run;
    struct reduce reduce;
    struct ran ran;
    size_t compared, different; /* results, of all ranks */
};

/* ---------------------------------------------------------------- the split */

/* Rank 0 chooses. Returns GOES_ON or the exit code of all. */
static int choose(struct run_ranks_command *self)
{
    struct healcl_split *split = &self->split;
    struct healcl_error error = {.status = HEALCL_OK};
    enum healcl_status status = HEALCL_OK;
    split->ranks = (uint32_t)self->ranks.count;
    if (self->axis_text)
        status = find_split(self->opening.transcript, self->axis_text, split, &error);
    else if (self->ranks.rank == 0 && split->ranks > 1)
        status = healcl_transcript_choose_split(self->opening.transcript, split, &error);
    const char *file = status == HEALCL_USAGE ? NULL : self->opening.file;
    const int code = ranks_agree(&self->ranks, status, file, &error);
    if (code == GOES_ON)
        ranks_share(&self->ranks, split, sizeof *split);
    split->rank = (uint32_t)self->ranks.rank;
    return code;
}

/* A whole transcript may take more than a rank has. */
static enum healcl_status check_memory(const struct run_ranks_command *self,
                                       struct healcl_error *error)
{
    const uint64_t limit = self->opening.memory_limit;
    const uint64_t bytes = healcl_transcript_split_facts(self->part).tensor_bytes;
    if (limit > 0 && bytes > limit)
        REFUSE_FOR(error, LIMIT,
                   "a rank's part takes %" PRIu64 " bytes, above the limit of %" PRIu64, bytes,
                   limit);
    return HEALCL_OK;
}

static enum healcl_status open_part(struct run_ranks_command *self, struct healcl_error *error)
{
    self->reduce.ranks = &self->ranks;
    const struct healcl_session_options options = {.exchange = reduce_exchange,
                                                   .exchange_context = &self->reduce};
    TRY(healcl_transcript_split(self->opening.transcript, &self->split, &self->part, error));
    TRY(check_memory(self, error));
    return healcl_session_open(self->part, self->opening.device, &options, &self->run, error);
}

/* ---------------------------------------------------------------- running */

static void note_rank(struct run_ranks_command *self, uint64_t *times, uint64_t *exchanges,
                      uint64_t uploaded)
{
    const struct healcl_session_facts facts = healcl_session_facts(self->run);
    self->ran = (struct ran){
        .rank = self->split.rank,
        .nanoseconds = sort_to_median(times, self->repeat),
        .exchange_nanoseconds = sort_to_median(exchanges, self->repeat),
        .bytes_uploaded = uploaded,
        .bytes_sent = self->reduce.bytes_sent / facts.runs,
        .bytes_foreseen =
            exchange_bytes_sent(self->part->plan, self->split.rank, self->split.ranks),
        .tensor_bytes = healcl_transcript_split_facts(self->part).tensor_bytes,
        .device_bytes = facts.device_bytes_peak,
    };
    snprintf(self->ran.host, sizeof self->ran.host, "%s", self->ranks.host);
    snprintf(self->ran.device, sizeof self->ran.device, "%s", opening_device(&self->opening));
}

/* The first run, which builds kernels and uploads what stays, does not count where others follow.
 */
static enum healcl_status run_all(struct run_ranks_command *self, struct healcl_error *error)
{
    const uint32_t warm_up = self->repeat > 1;
    uint64_t uploaded = 0, *times = xcalloc(self->repeat, 2 * sizeof *times);
    enum healcl_status status = HEALCL_OK;
    for (uint32_t i = 0; i < self->repeat + warm_up && status == HEALCL_OK; i++) {
        ranks_meet(&self->ranks);
        status = healcl_session_run(self->run, error);
        const struct healcl_session_facts facts = healcl_session_facts(self->run);
        if (i == 0)
            uploaded = facts.bytes_uploaded;
        if (i < warm_up)
            continue;
        times[i - warm_up] = facts.nanoseconds;
        times[self->repeat + i - warm_up] = facts.exchange_nanoseconds;
    }
    if (status == HEALCL_OK)
        note_rank(self, times, times + self->repeat, uploaded);
    free(times);
    return status;
}

/* Compares this rank's part of each result. A result that differs anywhere counts once. */
static enum healcl_status compare(struct run_ranks_command *self, struct healcl_error *error)
{
    size_t count;
    const struct healcl_tensor_info *results = healcl_transcript_results(self->part, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t different = 0, of_all = 0;
        if (!results[i].has_data)
            continue;
        TRY(healcl_session_compare(self->run, i, &different, error));
        if (different > 0)
            ranks_notice(&self->ranks,
                         "entry %zu (device_to_host): tensor %s: %" PRIu64
                         " values of this rank's differ",
                         results[i].entry, results[i].name, different);
        MPI_Allreduce(&different, &of_all, 1, MPI_UINT64_T, MPI_SUM, self->ranks.comm);
        self->compared++;
        self->different += of_all > 0;
    }
    return HEALCL_OK;
}

/* Returns GOES_ON or the exit code of all. Other ranks wait for a part that runs, so that a rank
 * ends them where it fails then. */
static int run_part(struct run_ranks_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    int code = choose(self);
    if (code == GOES_ON)
        code = ranks_agree(&self->ranks, open_part(self, &error), self->opening.file, &error);
    if (code != GOES_ON)
        return code;
    enum healcl_status status = run_all(self, &error);
    if (status == HEALCL_OK)
        status = compare(self, &error);
    if (status != HEALCL_OK)
        ranks_fail(&self->ranks, self->opening.file, &error);
    return GOES_ON;
}

/* ---------------------------------------------------------------- the report */

static int print_reports(struct run_ranks_command *self, const struct run_ranks_facts *facts)
{
    const struct style style = style_of(stdout);
    cJSON *document = report_run_ranks(facts);
    if (!self->opening.quiet && !self->opening.json.on_stdout)
        report_run_ranks_text(document, &style);
    const int code =
        finish_output(report_file_json(&self->opening.json, document, EXIT_VERIFIED, false));
    return code == EXIT_VERIFIED && facts->different > 0 ? EXIT_DIFFERENT : code;
}

/* All ranks call this. */
static int report(struct run_ranks_command *self)
{
    struct ran *all = ranks_gather(&self->ranks, &self->ran, sizeof self->ran);
    const struct run_ranks_facts facts = {.file = self->opening.file,
                                          .part = self->part,
                                          .split = &self->split,
                                          .is_chosen = !self->axis_text,
                                          .ranks = all,
                                          .repeat = self->repeat,
                                          .compared = self->compared,
                                          .different = self->different};
    int code = self->ranks.rank == 0 ? print_reports(self, &facts) : EXIT_VERIFIED;
    free(all);
    return ranks_first(&self->ranks, code);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"split", 's', OPTION_WORD, "ENTRY:AXIS",
     "an upload by its entry, or its tensor's name, and the axis to split, from 0; else the one "
     "that leaves a rank the least memory and exchange",
     KEPT_IN(struct run_ranks_command, axis_text)},
    {"repeat", 0, OPTION_COUNT, "N",
     "run N times after a first one that does not count, and report medians",
     KEPT_IN(struct run_ranks_command, repeat), .most = REPEAT_MAX},
    OPENING_OPTIONS(struct run_ranks_command, opening),
};

static int run(const struct command *command, int argc, char **argv)
{
    static struct run_ranks_command self = {.repeat = 1, .opening.is_split = true};
    int code = opening_take(&self.opening, command, argc, argv, &self);
    if (code != GOES_ON)
        return code;
    code = opening_start(&self.opening, &self.ranks);
    if (code == GOES_ON)
        code = opening_open(&self.opening, &self.ranks);
    if (code == GOES_ON)
        code = run_part(&self);
    if (code == GOES_ON)
        code = report(&self);
    healcl_session_close(self.run);
    healcl_transcript_close(self.part);
    opening_release(&self.opening);
    ranks_end(&self.ranks);
    return code;
}

const struct command command_run_ranks = {
    .name = "run",
    .summary = "run one transcript on all ranks, each with a part of it",
    .help = "Splits a transcript along an axis of an input, runs each part on a rank's device, and "
            "verifies the results. Where the axis is summed, ranks exchange their sums.",
    .usage = "mpirun -n RANKS healcl-mpi run [OPTIONS] FILE",
    .notes =
        "Each rank decodes and uploads only its part, and compares its part of the results. An "
        "axis that an operation mixes is refused, with the entry. healcl inspect --ranks tells "
        "beforehand what a split takes (docs/SCALE.md).\n\nExit codes: 0 verified, or nothing to "
        "verify; 1 a result differs; 2 wrong usage; 3 the transcript is refused, cannot be split "
        "so, or ranks are not alike; 4 a device or OpenCL failed, or memory ran out.",
    .options = options,
    .operands = OPERANDS_FILE,
    .device = DEVICE_HERE,
    .run = run,
};
