/*
 * Fuzzes the library's interface: the same calls on a device and on the host reference, side by
 * side. Whatever one side answers the other one has to: status, message, and all that can be
 * read. The first byte of an input chooses sessions or queues, and the device: as it is, or in a
 * context of the caller's, with callbacks for memory and the log. The next ones choose a transcript
 * (program.h), the others the calls: of sessions on that transcript, with live inputs, in the
 * background, with callbacks, with audits; of runs with an observer; and of queues, with tensors
 * and views, of operations of a manifest too.
 *
 * Only what comes of cancelling depends on who is faster, and memory may be refused to the device
 * alone; then both sides start anew.
 */
#include <math.h>

#include "device.h"
#include "ops/ops.h"
#include "program.h"

enum { REFERENCE, DEVICE, SIDES };

enum { RESULTS = 64, BUFFER = 1 << 14, TENSORS = 12, ACTIONS = 20 };

/* The call in hand: the side that makes it, its error, and what both have answered. */
static int side;
static struct healcl_error errors[SIDES], *error;
static enum healcl_status answers[SIDES];

/* ---------------------------------------------------------------- a device with callbacks */

/* What a caller brings along. */
static struct caller {
    cl_context context;
    const struct opencl *cl;
    long buffers;         /* that live */
    uint32_t allocations; /* since refuse_memory */
    uint32_t refused_at;  /* from 1 on; 0: never */
    bool refuses_on;      /* and all behind it: else a device that tries again gets some */
    bool has_refused;
} caller;

static void *allocate(void *context, size_t bytes)
{
    struct caller *own = context;
    cl_int code = CL_SUCCESS;
    EXPECT(own == &caller && bytes > 0);
    const uint32_t number = ++own->allocations;
    if (own->refused_at > 0 &&
        (own->refuses_on ? number >= own->refused_at : number == own->refused_at)) {
        own->has_refused = true;
        return NULL;
    }
    cl_mem memory = own->cl->clCreateBuffer(own->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    own->buffers += memory != NULL;
    return memory;
}

static void release_memory(void *context, void *memory)
{
    struct caller *own = context;
    EXPECT(own == &caller && memory && own->buffers-- > 0);
    EXPECT(own->cl->clReleaseMemObject(memory) == CL_SUCCESS);
}

static void hear(void *context, const char *line)
{
    EXPECT(context == &caller && *line && !strchr(line, '\n'));
}

static struct healcl_device *device_with_callbacks(void)
{
    static struct healcl_device *device;
    struct healcl_error failure = {.detail = NULL};
    cl_int code = CL_SUCCESS;
    if (device)
        return device;
    const struct healcl_device *other = fuzz_device(0);
    cl_device_id id = other->info.device_id;
    caller.cl = other->cl;
    caller.context = caller.cl->clCreateContext(NULL, 1, &id, NULL, NULL, &code);
    EXPECT(caller.context);
    const struct healcl_device_options options = {.context = caller.context,
                                                  .device = id,
                                                  .log = hear,
                                                  .log_context = &caller,
                                                  .allocate = allocate,
                                                  .release = release_memory,
                                                  .memory_context = &caller};
    EXPECT(healcl_device_open_with(&options, &device, &failure) == HEALCL_OK);
    return device;
}

static bool has_callbacks; /* whether the device in hand is that one */

/* Has one of the next allocations refused, now and then, or all from it on until memory_is_back. */
static void refuse_memory(struct bytes *bytes)
{
    if (!has_callbacks || take_below(bytes, 4) != 1)
        return;
    caller.allocations = 0;
    caller.refused_at = 1 + take_below(bytes, 8);
    caller.refuses_on = take_below(bytes, 2);
}

/* ---------------------------------------------------------------- both sides */

/* Whether the device has failed for want of memory: what it has is not what the reference has. */
static bool memory_is_back(void)
{
    bool has_failed = caller.has_refused && answers[DEVICE] != answers[REFERENCE];
    caller.refused_at = 0;
    caller.has_refused = false;
    return has_failed;
}

static void expect_line(const struct healcl_error *told)
{
    EXPECT(*told->message && !strchr(told->message, '\n'));
}

/* Both sides have answered the same, but where memory was refused. Returns the device's status. */
static enum healcl_status agree(const char *what)
{
    const enum healcl_status status = answers[REFERENCE];
    const char *messages[] = {errors[REFERENCE].message, errors[DEVICE].message};
    const struct healcl_error *a = &errors[REFERENCE], *b = &errors[DEVICE];
    const bool same = strcmp(messages[REFERENCE], messages[DEVICE]) == 0 && a->cause == b->cause &&
                      a->entry == b->entry && a->operation == b->operation &&
                      a->argument == b->argument;
    const bool may_fail = caller.has_refused &&
                          (answers[DEVICE] == HEALCL_DEVICE || answers[DEVICE] == HEALCL_REFUSED);
    if (!may_fail && (answers[DEVICE] != status || (status != HEALCL_OK && !same))) {
        fprintf(stderr, "%s: reference %s '%s', device %s '%s'\n", what, healcl_status_name(status),
                messages[REFERENCE], healcl_status_name(answers[DEVICE]), messages[DEVICE]);
        abort();
    }
    for (int i = 0; i < SIDES; i++) {
        if (answers[i] != HEALCL_OK)
            expect_line(&errors[i]);
        healcl_error_clear(&errors[i]);
    }
    return answers[DEVICE];
}

/* A call of either side, with `side` and `error` in it. */
#define BOTH(what, call)                                                             \
    (side = REFERENCE, error = &errors[side], answers[side] = (call), side = DEVICE, \
     error = &errors[side], answers[side] = (call), agree(what))

static struct healcl_device *on(void)
{
    return side == REFERENCE ? NULL : has_callbacks ? device_with_callbacks() : fuzz_device(0);
}

/* ---------------------------------------------------------------- sessions */

struct state {
    struct bytes bytes;
    const struct program *program;
    struct healcl_transcript *transcript;
    const struct healcl_tensor_info *inputs, *results;
    size_t input_count, result_count;
    struct healcl_session *sessions[SIDES];
    double audit_share;             /* of the device's */
    uint64_t audited;               /* audits so far */
    char *buffers[2];               /* that inputs are bound to, of both sides */
    char *received[SIDES][RESULTS]; /* memory for results */
};

static void close_sessions(struct state *state)
{
    for (side = 0; side < SIDES; side++) {
        healcl_session_close(state->sessions[side]);
        state->sessions[side] = NULL;
    }
}

static void open_sessions(struct state *state)
{
    static const double shares[] = {0, 1, 0.25, 0.02}, wrong[] = {-0.5, 1.5, NAN, INFINITY};
    struct bytes *bytes = &state->bytes;
    struct healcl_session_options options[SIDES];
    close_sessions(state);
    state->audited = 0;
    state->audit_share = shares[take_below(bytes, 4)];
    options[REFERENCE] = (struct healcl_session_options){.keep_nothing = take_below(bytes, 3) == 1};
    options[DEVICE] = options[REFERENCE];
    options[DEVICE].audit_share = wrong[take_below(bytes, 4)];
    EXPECT(BOTH("wrong share", healcl_session_open(state->transcript, on(), &options[DEVICE],
                                                   &state->sessions[side], error)) == HEALCL_USAGE);
    options[DEVICE].audit_share = state->audit_share;
    options[DEVICE].audit_seed = take(bytes);
    EXPECT(BOTH("open", healcl_session_open(state->transcript, on(), &options[side],
                                            &state->sessions[side], error)) == HEALCL_OK);
}

/* A right device differs nowhere; what is told of audits adds up. */
static void expect_audit(struct state *state)
{
    const struct healcl_audit_facts facts = healcl_session_audit(state->sessions[DEVICE]);
    uint64_t audits = 0, elements = 0;
    size_t steps = 0, steps_audited = 0;
    for (size_t i = 0; i < facts.kernel_count; i++) {
        const struct healcl_audit_kernel *kernel = &facts.kernels[i];
        EXPECT(*kernel->name && kernel->steps > 0 && kernel->steps_audited <= kernel->steps);
        EXPECT((kernel->audits > 0) == (kernel->steps_audited > 0));
        steps += kernel->steps;
        steps_audited += kernel->steps_audited;
        audits += kernel->audits;
        elements += kernel->elements;
    }
    EXPECT(!facts.difference && facts.nanoseconds <= facts.run_nanoseconds);
    EXPECT(facts.audits == audits && facts.elements == elements && elements >= audits);
    EXPECT(facts.steps == steps && facts.steps_audited == steps_audited);
    EXPECT(audits >= state->audited && (state->audit_share > 0 || audits == 0));
    EXPECT(healcl_session_audit(state->sessions[REFERENCE]).run_nanoseconds == 0);
    state->audited = audits;
}

/* A number that is mostly one of count. */
static size_t number(struct state *state, size_t count)
{
    return take_below(&state->bytes, (uint32_t)count + 1);
}

static void read_one(struct state *state, size_t result)
{
    const void *data[SIDES] = {NULL, NULL};
    uint64_t different[SIDES] = {0, 0};
    const size_t bytes = result < state->result_count ? state->results[result].bytes : 8;
    char *memory[SIDES] = {malloc(bytes + 1), malloc(bytes + 1)};
    EXPECT(memory[REFERENCE] && memory[DEVICE]);
    enum healcl_status status =
        BOTH("map", healcl_session_map(state->sessions[side], result, &data[side], error));
    if (status == HEALCL_OK)
        EXPECT(bytes == 0 || memcmp(data[REFERENCE], data[DEVICE], bytes) == 0);
    EXPECT(BOTH("read", healcl_session_read(state->sessions[side], result, memory[side], bytes,
                                            error)) == status);
    if (status == HEALCL_OK)
        EXPECT(memcmp(memory[REFERENCE], data[DEVICE], bytes) == 0);
    if (BOTH("compare", healcl_session_compare(state->sessions[side], result, &different[side],
                                               error)) == HEALCL_OK)
        EXPECT(different[REFERENCE] == different[DEVICE]);
    (void)BOTH("read too little",
               healcl_session_read(state->sessions[side], result, memory[side], bytes + 1, error));
    free(memory[REFERENCE]);
    free(memory[DEVICE]);
}

static void read_all(struct state *state)
{
    struct healcl_session_facts facts[SIDES];
    for (side = 0; side < SIDES; side++)
        facts[side] = healcl_session_facts(state->sessions[side]);
    EXPECT(facts[REFERENCE].runs == facts[DEVICE].runs && facts[DEVICE].fallbacks == 0);
    EXPECT(facts[REFERENCE].dropped_digits == facts[DEVICE].dropped_digits);
    for (size_t i = 0; i < state->result_count; i++)
        read_one(state, i);
    expect_audit(state);
}

/* Runs all segments, or count of them, and reads all that is there then. */
static void run_and_read(struct state *state, bool all, size_t first, size_t count)
{
    refuse_memory(&state->bytes);
    (void)BOTH("run",
               all ? healcl_session_run(state->sessions[side], error)
                   : healcl_session_run_segments(state->sessions[side], first, count, error));
    if (memory_is_back())
        open_sessions(state);
    else
        read_all(state);
}

/* What a run in the background calls at its end: it may read results, and any thread cancels. */
struct ended {
    struct healcl_session *session;
    size_t result, bytes;
    char memory[BUFFER];
    enum healcl_status status, read, compared;
    uint64_t different;
    bool cancels;
    int calls;
};

static void note_end(void *context, enum healcl_status status)
{
    struct ended *ended = context;
    struct healcl_error own = {.detail = NULL};
    ended->calls++;
    ended->status = status;
    ended->read =
        healcl_session_read(ended->session, ended->result, ended->memory, ended->bytes, &own);
    if (ended->read == HEALCL_OK) {
        const void *data = NULL;
        EXPECT(healcl_session_map(ended->session, ended->result, &data, &own) == HEALCL_OK);
        EXPECT(ended->bytes == 0 || memcmp(data, ended->memory, ended->bytes) == 0);
    }
    ended->compared =
        healcl_session_compare(ended->session, ended->result, &ended->different, &own);
    if (ended->cancels)
        healcl_session_cancel(ended->session);
    healcl_error_clear(&own);
}

static void run_in_background(struct state *state)
{
    static struct ended ended[SIDES];
    const size_t segments = healcl_transcript_segment_count(state->transcript);
    const size_t first = number(state, segments) / 2, count = number(state, segments);
    const size_t result = number(state, state->result_count);
    const uint32_t how = take_below(&state->bytes, 8);
    const bool cancels = how % 4 == 1;
    for (side = 0; side < SIDES; side++) {
        ended[side] =
            (struct ended){.session = state->sessions[side], .result = result, .cancels = how >= 4};
        if (result < state->result_count && state->results[result].bytes <= BUFFER)
            ended[side].bytes = state->results[result].bytes;
    }
    EXPECT(BOTH("start", healcl_session_start(state->sessions[side], first, count, note_end,
                                              &ended[side], error)) == HEALCL_OK);
    if (cancels)
        for (side = 0; side < SIDES; side++)
            healcl_session_cancel(state->sessions[side]);
    EXPECT(BOTH("bind", healcl_session_bind(state->sessions[side], 0, NULL, error)) ==
           HEALCL_USAGE);
    EXPECT(BOTH("start twice", healcl_session_start(state->sessions[side], 0, 1, NULL, NULL,
                                                    error)) == HEALCL_USAGE);
    for (side = 0; side < SIDES; side++) {
        (void)healcl_session_poll(state->sessions[side]);
        (void)healcl_session_facts(state->sessions[side]);
        (void)healcl_session_audit(state->sessions[side]);
        answers[side] = healcl_session_wait(state->sessions[side], &errors[side]);
        EXPECT(ended[side].calls == 1 && ended[side].status == answers[side]);
        EXPECT(healcl_session_poll(state->sessions[side]));
    }
    if (cancels) { /* one of them may have been faster */
        healcl_error_clear(&errors[REFERENCE]);
        healcl_error_clear(&errors[DEVICE]);
        open_sessions(state);
        return;
    }
    (void)agree("wait");
    EXPECT(ended[REFERENCE].read == ended[DEVICE].read);
    EXPECT(ended[REFERENCE].compared == ended[DEVICE].compared);
    EXPECT(ended[REFERENCE].different == ended[DEVICE].different);
    if (ended[DEVICE].read == HEALCL_OK)
        EXPECT(memcmp(ended[REFERENCE].memory, ended[DEVICE].memory, ended[DEVICE].bytes) == 0);
    expect_audit(state);
}

static void bind(struct state *state)
{
    char *buffer = state->buffers[take_below(&state->bytes, 2)];
    const size_t input = number(state, state->input_count);
    const uint32_t what = take_below(&state->bytes, 4);
    if (input < state->input_count && state->inputs[input].bytes > BUFFER)
        return;
    if (what == 1) /* moduli and indices become wrong by that, now and then */
        memset(buffer + take_below(&state->bytes, BUFFER - 64), take(&state->bytes), 64);
    (void)BOTH("bind",
               healcl_session_bind(state->sessions[side], input, what == 0 ? NULL : buffer, error));
}

static void receive(struct state *state)
{
    const size_t result = number(state, state->result_count);
    const bool gives = take_below(&state->bytes, 3) > 0 && result < RESULTS;
    const size_t bytes = result < state->result_count ? state->results[result].bytes + 1 : 1;
    for (side = 0; side < SIDES && gives; side++)
        if (!state->received[side][result])
            EXPECT((state->received[side][result] = malloc(bytes)));
    (void)BOTH("receive",
               healcl_session_receive(state->sessions[side], result,
                                      gives ? state->received[side][result] : NULL, error));
}

/* ---------------------------------------------------------------- runs with an observer */

struct observed {
    size_t repetitions, differences, warnings, segments;
    uint32_t asked, cancelled_at; /* from 1 on; 0: never */
};

static bool on_question(void *context)
{
    struct observed *observed = context;
    EXPECT(observed->cancelled_at == 0 || observed->asked < observed->cancelled_at);
    return ++observed->asked == observed->cancelled_at;
}

static void on_repetition(void *context, enum healcl_phase phase, uint32_t n, uint32_t count)
{
    (void)phase;
    EXPECT(n >= 1 && n <= count);
    ((struct observed *)context)->repetitions++;
}

static void on_difference(void *context, const char *line)
{
    EXPECT(*line);
    ((struct observed *)context)->differences++;
}

static void on_warning(void *context, const char *line)
{
    EXPECT(*line);
    ((struct observed *)context)->warnings++;
}

static void on_progress(void *context, size_t segment, size_t segments, const char *name,
                        size_t step, size_t steps)
{
    EXPECT(segment < segments && name && step <= steps);
    ((struct observed *)context)->segments++;
}

/* Of a run that an observer may cancel: both sides do not ask as often. */
static void expect_cancelled(struct observed observed[SIDES], struct healcl_report *reports[SIDES])
{
    for (int i = 0; i < SIDES; i++) {
        const bool cancelled = observed[i].asked == observed[i].cancelled_at;
        EXPECT(cancelled == (answers[i] == HEALCL_CANCELLED));
        EXPECT((answers[i] == HEALCL_OK) == (reports[i] != NULL));
        if (answers[i] != HEALCL_OK)
            expect_line(&errors[i]);
        healcl_error_clear(&errors[i]);
    }
}

static void run_whole(struct state *state)
{
    struct observed observed[SIDES] = {{0}};
    struct healcl_report *reports[SIDES] = {NULL, NULL};
    const struct healcl_input input = {number(state, state->input_count), state->buffers[0]};
    struct healcl_run_options options = {.no_warm_up = true, .inputs = &input};
    options.no_verify = take_below(&state->bytes, 4) == 1;
    options.repeat = take_below(&state->bytes, 3);
    options.input_count = take_below(&state->bytes, 2);
    if (input.input < state->input_count && state->inputs[input.input].bytes > BUFFER)
        options.input_count = 0;
    options.observer = (struct healcl_observer){.repetition = on_repetition,
                                                .difference = on_difference,
                                                .warning = on_warning,
                                                .progress = on_progress,
                                                .cancelled = on_question};
    const uint32_t cancelled_at = take_below(&state->bytes, 8);
    for (side = 0; side < SIDES; side++) {
        observed[side].cancelled_at = cancelled_at < 4 ? 0 : cancelled_at - 3;
        options.observer.context = &observed[side];
        answers[side] =
            healcl_run(state->transcript, on(), &options, &reports[side], &errors[side]);
    }
    if (observed[DEVICE].cancelled_at > 0) {
        expect_cancelled(observed, reports);
    } else if (agree("run") == HEALCL_OK) {
        const struct healcl_report *a = reports[REFERENCE], *b = reports[DEVICE];
        EXPECT(a->verdict == b->verdict && a->results == b->results);
        EXPECT(a->results_compared == b->results_compared);
        EXPECT(a->results_different == b->results_different);
        EXPECT(a->dropped_digits == b->dropped_digits && a->segment_count == b->segment_count);
        EXPECT(observed[REFERENCE].differences == observed[DEVICE].differences);
        EXPECT(observed[REFERENCE].repetitions == observed[DEVICE].repetitions);
    }
    healcl_report_free(reports[REFERENCE]);
    healcl_report_free(reports[DEVICE]);
}

static void act_on_sessions(struct state *state)
{
    const size_t segments = healcl_transcript_segment_count(state->transcript);
    size_t input, first, count;
    switch (take_below(&state->bytes, 10)) {
    case 0: open_sessions(state); break;
    case 1: bind(state); break;
    case 2:
        input = number(state, state->input_count);
        (void)BOTH("keep",
                   healcl_session_keep(state->sessions[side], input, state->bytes.left % 2, error));
        break;
    case 3: run_and_read(state, true, 0, 0); break;
    case 4:
        first = number(state, segments);
        count = number(state, segments);
        run_and_read(state, false, first, count);
        break;
    case 5: run_in_background(state); break;
    case 6: receive(state); break;
    case 7: read_one(state, number(state, state->result_count)); break;
    case 8:
        EXPECT(BOTH("wait", healcl_session_wait(state->sessions[side], error)) == HEALCL_USAGE);
        for (side = 0; side < SIDES; side++)
            healcl_session_cancel(state->sessions[side]);
        break;
    default: run_whole(state);
    }
}

/* ---------------------------------------------------------------- queues */

/* The same tensors on both sides; what nobody has written to is not among them. */
struct both {
    struct healcl_tensor *of[SIDES];
};

static struct healcl_queue *queues[SIDES]; /* of many inputs: opening one is slow */
static struct both tensors[TENSORS];
static uint32_t tensor_count;

static void release(uint32_t i)
{
    healcl_tensor_release(tensors[i].of[REFERENCE]);
    healcl_tensor_release(tensors[i].of[DEVICE]);
    tensors[i] = tensors[--tensor_count];
}

static void close_queues(bool with_tensors)
{
    while (!with_tensors && tensor_count > 0)
        release(0);
    for (side = 0; side < SIDES; side++) {
        healcl_queue_close(queues[side]);
        queues[side] = NULL;
    }
    while (tensor_count > 0)
        release(0);
}

static void add_tensor(const struct both *both)
{
    EXPECT(!both->of[REFERENCE] == !both->of[DEVICE]);
    if (!both->of[DEVICE])
        return;
    const struct healcl_tensor_info a = healcl_tensor_describe(both->of[REFERENCE]),
                                    b = healcl_tensor_describe(both->of[DEVICE]);
    EXPECT(a.dtype == b.dtype && a.rank == b.rank && a.bytes == b.bytes);
    EXPECT(memcmp(a.shape, b.shape, a.rank * sizeof *a.shape) == 0);
    if (tensor_count == TENSORS)
        release(0);
    tensors[tensor_count++] = *both;
}

static void create(struct bytes *bytes)
{
    enum { RANK_MOST = 3, SIZE_MOST = 7 };
    char data[SIZE_MOST * SIZE_MOST * SIZE_MOST * sizeof(int64_t)] = "";
    int64_t shape[RANK_MOST];
    struct both both = {{NULL, NULL}};
    const enum healcl_dtype dtype = (enum healcl_dtype)take_below(bytes, 3);
    const uint32_t rank = take_below(bytes, RANK_MOST + 1), fills = take_below(bytes, 3);
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = (int64_t)take_below(bytes, SIZE_MOST + 2) - 1;
    const size_t step = 1 + 2 * take_below(bytes, 8);
    const uint8_t seed = take(bytes);
    for (uint32_t i = 0; i < rank; i++)
        shape[i] += shape[i] < 0 && seed % 16 != 0; /* wrong ones are rare */
    for (size_t i = 0; i < sizeof data; i++) {      /* any numbers, or small ones */
        const size_t value = i * step + seed, small = i % 8 == 0 ? seed % 7 + 1u : 0;
        data[i] = (char)(fills == 1 ? small : value);
    }
    refuse_memory(bytes);
    (void)BOTH("create", healcl_tensor_create(queues[side], dtype, rank, shape, fills ? data : NULL,
                                              &both.of[side], error));
    if (memory_is_back())
        healcl_tensor_release(both.of[REFERENCE]);
    else
        add_tensor(&both);
}

/* One of the tensors, mostly of the shape and dtype of another. */
static const struct both *any_tensor(struct bytes *bytes, const struct both *like)
{
    if (tensor_count == 0)
        return NULL;
    const uint32_t first = take_below(bytes, tensor_count);
    for (uint32_t i = 0; like && i < tensor_count; i++) {
        const struct both *both = &tensors[(first + i) % tensor_count];
        const struct healcl_tensor_info a = healcl_tensor_describe(like->of[DEVICE]),
                                        b = healcl_tensor_describe(both->of[DEVICE]);
        if (a.dtype == b.dtype && a.rank == b.rank &&
            memcmp(a.shape, b.shape, a.rank * sizeof *a.shape) == 0 && first % 8 != 7)
            return both;
    }
    return &tensors[first];
}

/* Arguments for a form: of the right kinds, and not much more. */
struct call_arguments {
    struct healcl_argument list[SIDES][PARAMETERS_MAX];
    int64_t sizes[PARAMETERS_MAX][5];
    struct healcl_index items[PARAMETERS_MAX][4];
    const struct both *first;
};

static struct healcl_index any_index(struct bytes *bytes)
{
    const uint8_t what = take(bytes);
    return (struct healcl_index){.kind =
                                     (enum healcl_index_kind)(what % 16 == 0 ? HEALCL_INDEX_ELLIPSIS
                                                              : what % 4 == 0 ? HEALCL_INDEX_INT
                                                                              : HEALCL_INDEX_SLICE),
                                 .value = what / 16 % 3,
                                 .has_start = what & 1,
                                 .has_stop = what & 2,
                                 .has_step = what & 8,
                                 .start = what / 16 % 2,
                                 .stop = what / 32,
                                 .step = 1 + what / 64};
}

static struct healcl_argument any_argument(struct bytes *bytes, struct call_arguments *arguments,
                                           uint32_t i, enum healcl_parameter_kind kind)
{
    static const int64_t values[] = {0, 1, 2, 3, -1, -2, 97, 65537, INT64_MAX, INT64_MIN};
    const uint8_t what = take(bytes);
    uint32_t count = 0;
    switch (kind) {
    case HEALCL_PARAMETER_SHAPE:
        for (; count < what % 4; count++)
            arguments->sizes[i][count] = what == 255 ? -1 : (int64_t)take_below(bytes, 6);
        return healcl_shape_argument(count, arguments->sizes[i]);
    case HEALCL_PARAMETER_INDEX:
        for (; count < what % 4; count++)
            arguments->items[i][count] = any_index(bytes);
        return healcl_index_argument(count, arguments->items[i]);
    case HEALCL_PARAMETER_DTYPE: return healcl_dtype_argument((enum healcl_dtype)(what % 3));
    case HEALCL_PARAMETER_PERM:
    case HEALCL_PARAMETER_HINT:
    case HEALCL_PARAMETER_NOTHING: return healcl_no_argument();
    case HEALCL_PARAMETER_MODULUS: return healcl_int_argument(values[what % 16 ? 5 + what % 4 : 0]);
    default: return healcl_int_argument(values[what % (kind == HEALCL_PARAMETER_FLAG ? 2 : 10)]);
    }
}

/* A form of an operation, built in or of the manifest, as the library tells of them. Those that are
 * functions of their own, and "empty", whose contents are undefined, are no calls. */
static const struct healcl_form_info *any_form(struct bytes *bytes, size_t *number)
{
    enum { OPERATIONS_MOST = 64 };
    static struct healcl_operation_info infos[OPERATIONS_MOST];
    static uint32_t count;
    while (healcl_operation_describe(program_operations(), count, &infos[count]))
        EXPECT(++count < OPERATIONS_MOST);
    *number = take_below(bytes, count);
    const struct healcl_operation_info *info = &infos[*number];
    return *number == OPERATION_EMPTY || *number == OPERATION_HOST_TO_DEVICE ||
                   *number == OPERATION_DEVICE_TO_HOST || *number == OPERATION_FREE_DEVICE_TENSOR
               ? NULL
               : &info->forms[take_below(bytes, info->form_count)];
}

/* The reference tells at once what data reveal, the device when it is waited for. */
static enum healcl_status call_and_tell(const struct healcl_form_info *form, size_t number,
                                        const struct call_arguments *arguments,
                                        struct healcl_tensor **result)
{
    enum healcl_status status =
        number % 2 ? healcl_call_number(queues[side], number, form->parameter_count,
                                        arguments->list[side], result, error)
                   : healcl_call(queues[side], form->name, form->parameter_count,
                                 arguments->list[side], result, error);
    if (side == DEVICE && status == HEALCL_OK && answers[REFERENCE] != HEALCL_OK)
        status = healcl_queue_wait(queues[side], error);
    return status;
}

static void call(struct bytes *bytes)
{
    struct call_arguments arguments = {.first = NULL};
    struct both result = {{NULL, NULL}};
    size_t number;
    const struct healcl_form_info *form = any_form(bytes, &number);
    if (!form || tensor_count == 0)
        return;
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        const enum healcl_parameter_kind kind = form->parameters[i].kind;
        if (kind == HEALCL_PARAMETER_TENSOR || kind == HEALCL_PARAMETER_OUT ||
            kind == HEALCL_PARAMETER_INDICES) {
            const struct both *both = any_tensor(bytes, arguments.first);
            if (!arguments.first)
                arguments.first = both;
            for (side = 0; side < SIDES; side++)
                arguments.list[side][i] = healcl_tensor_argument(both->of[side]);
        } else {
            arguments.list[REFERENCE][i] = arguments.list[DEVICE][i] =
                any_argument(bytes, &arguments, i, kind);
        }
    }
    refuse_memory(bytes);
    const enum healcl_status status =
        BOTH(form->name, call_and_tell(form, number, &arguments, &result.of[side]));
    if (!memory_is_back() && status == HEALCL_OK) {
        add_tensor(&result);
    } else if (BOTH("wait", healcl_queue_wait(queues[side], error)) == HEALCL_OK) {
        healcl_tensor_release(result.of[REFERENCE]);
        healcl_tensor_release(result.of[DEVICE]);
        while (tensor_count > 0) /* what it was to write may be anything */
            release(0);
    }
}

static void read_tensor(const struct both *both, bool too_little)
{
    const size_t bytes = healcl_tensor_describe(both->of[DEVICE]).bytes;
    char *data[SIDES] = {malloc(bytes + 1), malloc(bytes + 1)};
    EXPECT(data[0] && data[1]);
    const enum healcl_status status =
        BOTH("read", healcl_tensor_read(both->of[side], data[side], bytes + too_little, error));
    EXPECT(status == (too_little ? HEALCL_USAGE : HEALCL_OK));
    if (!too_little)
        EXPECT(memcmp(data[REFERENCE], data[DEVICE], bytes) == 0);
    free(data[REFERENCE]);
    free(data[DEVICE]);
}

static enum healcl_status fill_mapped(struct healcl_tensor *tensor, uint8_t seed)
{
    void *data = NULL;
    const size_t bytes = healcl_tensor_describe(tensor).bytes;
    const enum healcl_status status = healcl_tensor_map(tensor, &data, error);
    if (status != HEALCL_OK)
        return status;
    memset(data, seed, bytes);
    return healcl_tensor_unmap(tensor, error);
}

/* Writes to a tensor by something else than an operation. */
static void change_tensor(struct bytes *bytes)
{
    const struct both *to = any_tensor(bytes, NULL), *from = any_tensor(bytes, to);
    const uint8_t how = take(bytes), seed = take(bytes);
    const size_t size = healcl_tensor_describe(to->of[DEVICE]).bytes;
    char *data = malloc(size + 1);
    EXPECT(data);
    memset(data, seed, size);
    if (how % 3 == 0)
        (void)BOTH("copy", healcl_tensor_copy(from->of[side], to->of[side], error));
    else if (how % 3 == 1)
        (void)BOTH("write", healcl_tensor_write(to->of[side], data, size, error));
    else
        (void)BOTH("map", fill_mapped(to->of[side], seed));
    free(data);
}

static void act_on_queues(struct bytes *bytes)
{
    const struct healcl_limits limits = {.operations = program_operations()};
    for (side = 0; side < SIDES; side++)
        EXPECT(queues[side] ||
               healcl_queue_open(on(), &limits, &queues[side], &errors[side]) == HEALCL_OK);
    const uint8_t what = take(bytes);
    if (what < 64 || tensor_count == 0)
        create(bytes);
    else if (what < 200)
        call(bytes);
    else if (what < 215)
        change_tensor(bytes);
    else if (what < 230)
        read_tensor(any_tensor(bytes, NULL), what == 215);
    else if (what < 245)
        release(take_below(bytes, tensor_count));
    else if (what < 255 || take_below(bytes, 4))
        EXPECT(BOTH("wait", healcl_queue_wait(queues[side], error)) == HEALCL_OK);
    else
        close_queues(take_below(bytes, 2));
}

/* ---------------------------------------------------------------- an input */

static void act(struct state *state)
{
    const struct healcl_limits limits = {.operations = program_operations()};
    EXPECT(healcl_transcript_open_memory(state->program->writer.bytes,
                                         state->program->writer.length, &limits, &state->transcript,
                                         &errors[REFERENCE]) == HEALCL_OK);
    state->inputs = healcl_transcript_inputs(state->transcript, &state->input_count);
    state->results = healcl_transcript_results(state->transcript, &state->result_count);
    open_sessions(state);
    for (int i = 0; i < ACTIONS && state->bytes.left > 0; i++)
        act_on_sessions(state);
    close_sessions(state);
    healcl_transcript_close(state->transcript);
    for (size_t i = 0; i < RESULTS; i++) {
        free(state->received[REFERENCE][i]);
        free(state->received[DEVICE][i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char buffers[2][BUFFER];
    struct program program;
    if (size < 2)
        return 0;
    struct state state = {
        .bytes = {data + 1, size - 1}, .program = &program, .buffers = {buffers[0], buffers[1]}};
    if (has_callbacks != (data[0] / 2 % 4 == 1))
        close_queues(false); /* they are of the other device */
    has_callbacks = data[0] / 2 % 4 == 1;
    if (data[0] % 2) {
        memset(buffers, 1, sizeof buffers);
        const size_t half = (size - 1) / 2;
        program_make(&program, data + 1, half, false);
        state.bytes = (struct bytes){data + 1 + half, size - 1 - half};
        if (program.entries > 0)
            act(&state);
        program_release(&program);
        return 0;
    }
    for (int i = 0; i < ACTIONS && state.bytes.left > 0; i++)
        act_on_queues(&state.bytes);
    while (tensor_count > 0) {
        read_tensor(&tensors[0], false);
        release(0);
    }
    return 0;
}
