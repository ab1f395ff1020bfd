/* healcl-mpi run: one transcript, split among ranks. */

#include "cli/requests.h"
#include "core/numbers.h"
#include "mpi/opening.h"
#include "plan/split.h"
#include "run/loaded_transcript.h"

enum { REPEAT_MAX = 1000000 };

struct reduce {
    struct ranks *ranks;
    uint64_t bytes_sent; /* sent to other ranks, so far */
};

/* Figures of one rank. */
struct ran {
    uint64_t nanoseconds;          /* median of the counted runs */
    uint64_t exchange_nanoseconds; /* part of it in exchanges, with waits for other ranks; median */
    uint64_t bytes_uploaded;       /* by the first run */
    uint64_t bytes_sent;           /* to other ranks, in one run */
    uint64_t bytes_foreseen;       /* the same, as planned */
    uint64_t tensor_bytes;         /* peak of live tensors, as planned */
    uint64_t device_bytes;         /* peak of memory allocated on the device */
    char host[MPI_MAX_PROCESSOR_NAME], device[256];
};

/* The state of `healcl-mpi run`. */
struct run_ranks_command {
    struct opening opening;
    uint32_t repeat;
    const char *axis_text; /* "ENTRY:AXIS", or NULL */

    struct ranks ranks;
    struct healcl_split split;
    struct healcl_transcript *part;
    struct healcl_session *run;
    struct reduce reduce;
    struct ran ran, *all; /* of this rank; at rank 0, of all ranks */
    /* Number of results with an expected tensor, and of those that differ on any rank. */
    size_t compared, different;
};

/* ---------------------------------------------------------------- sums of residues over ranks */

/* The pieces of a block: rank r has elements [places[r], places[r] + counts[r]). */
struct pieces {
    int *counts, *places; /* by rank */
};

/* Receives the other ranks' summands of this rank's piece, concatenated by rank. */
static void gather_summands(struct reduce *reduce, const struct pieces *pieces, MPI_Datatype type,
                            size_t item, const char *block, char *summands)
{
    const struct ranks *ranks = reduce->ranks;
    const int own = pieces->counts[ranks->rank];
    int *counts = pieces->counts + ranks->count, *places = pieces->places + ranks->count;
    MPI_Request request;
    for (int rank = 0; rank < ranks->count; rank++) {
        counts[rank] = own;
        places[rank] = rank * own;
    }
    MPI_Ialltoallv(block, pieces->counts, pieces->places, type, summands, counts, places, type,
                   ranks->comm, &request);
    (void)ranks_wait(&request, 0);
    for (int rank = 0; rank < ranks->count; rank++)
        if (rank != ranks->rank)
            reduce->bytes_sent += (uint64_t)pieces->counts[rank] * item;
}

/* Replaces a block by the sum of all ranks' blocks. */
static void add_block(struct reduce *reduce, const struct healcl_exchange *exchange, size_t first,
                      size_t count, char *data, char *summands, const struct pieces *pieces)
{
    const struct ranks *ranks = reduce->ranks;
    const size_t item = exchange->dtype == HEALCL_INT64 ? sizeof(int64_t) : sizeof(int32_t);
    MPI_Datatype type = exchange->dtype == HEALCL_INT64 ? MPI_INT64_T : MPI_INT32_T;
    char *block = data + first * item;
    MPI_Request request;
    for (int rank = 0; rank < ranks->count; rank++) {
        const uint32_t number = (uint32_t)rank, all = (uint32_t)ranks->count;
        pieces->places[rank] = (int)exchange_piece(count, number, all);
        pieces->counts[rank] = (int)exchange_piece(count, number + 1, all) - pieces->places[rank];
    }
    gather_summands(reduce, pieces, type, item, block, summands);
    const size_t own = (size_t)pieces->counts[ranks->rank];
    for (int rank = 0; rank < ranks->count; rank++)
        if (rank != ranks->rank)
            healcl_exchange_add(exchange, first + (size_t)pieces->places[ranks->rank], own, data,
                                summands + (size_t)rank * own * item);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, type, block, pieces->counts, pieces->places, type, ranks->comm,
                    &request);
    (void)ranks_wait(&request, 0);
    reduce->bytes_sent += own * item * (size_t)(ranks->count - 1);
}

/* The exchange function of sessions; context is a struct reduce. Each rank sums a piece of the
 * tensor, and sends it to the others. If MPI fails, it ends all ranks. */
static enum healcl_status reduce_exchange(void *context, const struct healcl_exchange *exchange,
                                          void *data, struct healcl_error *error)
{
    struct reduce *reduce = context;
    const size_t ranks = (size_t)reduce->ranks->count;
    const size_t item = exchange->dtype == HEALCL_INT64 ? sizeof(int64_t) : sizeof(int32_t);
    const size_t block = exchange->elements < EXCHANGE_BLOCK ? exchange->elements : EXCHANGE_BLOCK;
    char *summands = xmalloc((block + ranks) * item);
    int *numbers = xmalloc(4 * ranks * sizeof *numbers);
    (void)error;
    const struct pieces pieces = {numbers, numbers + 2 * ranks};
    for (size_t first = 0, count; first < exchange->elements; first += count) {
        count = exchange->elements - first < block ? exchange->elements - first : block;
        add_block(reduce, exchange, first, count, data, summands, &pieces);
    }
    free(numbers);
    free(summands);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- the split */

/* Rank 0 chooses the axis. Returns GOES_ON or the exit code of all ranks. */
static int mpi_run_choose_axis(struct run_ranks_command *self)
{
    struct healcl_split *split = &self->split;
    struct healcl_error error = {.status = HEALCL_OK};
    enum healcl_status status = HEALCL_OK;
    split->ranks = (uint32_t)self->ranks.count;
    if (self->axis_text)
        status = find_split(self->opening.transcript, self->axis_text, split, &error);
    else if (self->ranks.rank == 0 && split->ranks > 1)
        status = healcl_transcript_choose_split(self->opening.transcript, split, &error);
    const char *file = status == HEALCL_USAGE ? NULL : self->opening.job.file;
    const int code = ranks_agree(&self->ranks, status, file, &error);
    if (code == GOES_ON)
        ranks_share(&self->ranks, split, sizeof *split);
    split->rank = (uint32_t)self->ranks.rank;
    return code;
}

/* A whole transcript may need more memory than a rank has. */
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
    return healcl_session_open(self->part, self->opening.job.device, &options, &self->run, error);
}

/* ---------------------------------------------------------------- running */

static void note_rank(struct run_ranks_command *self, uint64_t *times, uint64_t *exchanges,
                      uint64_t uploaded)
{
    const struct healcl_session_facts facts = healcl_session_facts(self->run);
    self->ran = (struct ran){
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

/* The first run builds kernels and uploads constant data. It does not count if other runs
 * follow. */
static enum healcl_status mpi_run_all(struct run_ranks_command *self, struct healcl_error *error)
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

/* Compares this rank's part of each result. A result that differs on any rank counts once. */
static enum healcl_status mpi_run_compare(struct run_ranks_command *self,
                                          struct healcl_error *error)
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
                         " values of this rank differ",
                         results[i].entry, results[i].name, different);
        MPI_Allreduce(&different, &of_all, 1, MPI_UINT64_T, MPI_SUM, self->ranks.comm);
        self->compared++;
        self->different += of_all > 0;
    }
    return HEALCL_OK;
}

/* Returns GOES_ON or the exit code of all ranks. Once a part runs, other ranks wait for it, so a
 * rank that fails then ends all ranks. */
static int mpi_run_part(struct run_ranks_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    int code = mpi_run_choose_axis(self);
    if (code == GOES_ON)
        code = ranks_agree(&self->ranks, open_part(self, &error), self->opening.job.file, &error);
    if (code != GOES_ON)
        return code;
    enum healcl_status status = mpi_run_all(self, &error);
    THEN(status, mpi_run_compare(self, &error));
    if (status != HEALCL_OK)
        ranks_fail(&self->ranks, self->opening.job.file, &error);
    return GOES_ON;
}

/* ---------------------------------------------------------------- the report */

static cJSON *mpi_run_report(void *context)
{
    const struct run_ranks_command *self = context;
    cJSON *document = json_report();
    JSON_ADD(document, STRING("transcript", self->opening.job.file),
             NUMBER("rank_count", self->split.ranks));
    if (self->split.ranks > 1)
        report_add_split(json_add_object(document, "split"), self->part, &self->split,
                         !self->axis_text);
    json_add_number(document, "repeat", self->repeat);
    report_add_exchanges(document, self->part);
    JSON_ADD(document, NUMBER("results_compared", self->compared),
             NUMBER("results_different", self->different));
    cJSON *ranks = json_add_array(document, "ranks");
    for (uint32_t i = 0; i < self->split.ranks; i++) {
        const struct ran *ran = &self->all[i];
        JSON_ADD(json_add_object(ranks, NULL), NUMBER("rank", i), STRING("host", ran->host),
                 STRING("device", ran->device), NUMBER("ns", ran->nanoseconds),
                 NUMBER("exchange_ns", ran->exchange_nanoseconds),
                 NUMBER("bytes_sent", ran->bytes_sent),
                 NUMBER("bytes_foreseen", ran->bytes_foreseen),
                 NUMBER("bytes_uploaded", ran->bytes_uploaded),
                 NUMBER("tensor_bytes", ran->tensor_bytes),
                 NUMBER("device_bytes_peak", ran->device_bytes));
    }
    report_add_parts(document, self->part);
    return document;
}

static void mpi_run_print(void *self, const cJSON *document, const struct style *style)
{
    (void)self;
    static const struct view_column columns[] = {
        {"rank", "{rank}", VIEW_RIGHT},
        {"host", "{host}", VIEW_SHRINKS},
        {"device", "{device}", VIEW_SHRINKS},
        {"time", "{ns:time}", VIEW_RIGHT},
        {"exchange", "{exchange_ns:time}", VIEW_RIGHT},
        {"sent", "{bytes_sent:bytes}", VIEW_RIGHT},
        {"uploaded", "{bytes_uploaded:bytes}", VIEW_RIGHT},
        {"memory", "{device_bytes_peak:bytes}", VIEW_RIGHT},
    };
    view_line(style, document, "transcript", "{transcript}");
    view_line(style, json_at(document, "split"), "split", REPORT_SPLIT);
    VIEW_SECTION(style, json_at(document, "ranks"), columns);
    putc('\n', style->stream);
    view_text(style, document,
              json_number_at(document, "results_different") > 0
                  ? "different: {results_different} of {results_compared} "
                    "result{results_compared:s}"
              : json_number_at(document, "results_compared") > 0
                  ? "verified: {results_compared} of {results_compared} "
                    "result{results_compared:s}"
                  : "nothing to verify");
}

/* All ranks call this. */
static int mpi_run_report_all(const struct command *command, struct run_ranks_command *self)
{
    int code = EXIT_VERIFIED;
    self->all = ranks_gather(&self->ranks, &self->ran, sizeof self->ran);
    if (self->ranks.rank == 0) {
        code = finish_output(job_report(command, self));
        if (code == EXIT_VERIFIED && self->different > 0)
            code = EXIT_DIFFERENT;
    }
    free(self->all);
    return ranks_first(&self->ranks, code);
}

/* ---------------------------------------------------------------- options */

static const struct command_option options[] = {
    {"split", 's', OPTION_WORD, "ENTRY:AXIS", KEPT_IN(struct run_ranks_command, axis_text),
     "the entry or tensor name of an upload, and the axis to split, counted from 0; by default "
     "those that need the least memory and exchange"},
    {"repeat", 0, OPTION_COUNT, "N", KEPT_IN(struct run_ranks_command, repeat),
     "run N times after a first run that does not count, and report medians", .most = REPEAT_MAX},
    OPENING_OPTIONS,
};

static int mpi_run_command(const struct command *command, void *context)
{
    struct run_ranks_command *self = context;
    self->opening.is_split = true;
    if (self->repeat == 0)
        self->repeat = 1;
    int code = opening_start(&self->opening, &self->ranks);
    if (code == GOES_ON)
        code = opening_open(&self->opening, &self->ranks);
    if (code == GOES_ON)
        code = mpi_run_part(self);
    if (code == GOES_ON)
        code = mpi_run_report_all(command, self);
    healcl_session_close(self->run);
    healcl_transcript_close(self->part);
    opening_release(&self->opening);
    ranks_end(&self->ranks);
    return code;
}

const struct command command_run_ranks = {
    .name = "run",
    .summary = "run one transcript on all ranks, each with a part of it",
    .help = "Splits a transcript along an axis of an input, runs each part on a rank's device, and "
            "verifies the results. If the axis is summed, ranks exchange their sums.",
    .usage = "mpirun -n RANKS healcl-mpi run [OPTIONS] FILE",
    .notes =
        "Each rank decodes and uploads only its part, and compares its part of the results. An "
        "axis that an operation mixes is refused, with the entry. healcl inspect --ranks shows "
        "beforehand what a split needs (docs/SCALE.md).\n\nExit codes: 0 verified, or nothing to "
        "verify; 1 a result differs; 2 wrong usage; 3 the transcript is refused or cannot be split "
        "this way, or ranks differ; 4 a device or OpenCL failed, or memory ran out.",
    .options = options,
    .operands = OPERANDS_FILE,
    .device = DEVICE_HERE,
    .size = sizeof(struct run_ranks_command),
    .run = mpi_run_command,
    .steps = {.prepare = opening_prepare, .report = mpi_run_report, .print = mpi_run_print},
};
