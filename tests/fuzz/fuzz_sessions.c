/*
 * Fuzzes sessions: the same calls on a device and on the host reference, side by side. Both
 * sides must give the same answers: status, message, and all that can be read. The first half of
 * an input chooses a transcript (program.h), the second one the calls: with request inputs, in the
 * background, with callbacks, and whole runs with an observer.
 *
 * Only the result of cancelling depends on timing; then both sides start again.
 */
#include "device.h"
#include "program.h"

enum { RESULTS = 64, BUFFER = 1 << 14, ACTIONS = 20 };

/* The call in hand: the side that makes it, its error, and what both have answered. */
static int side;
static struct healcl_error errors[SIDES], *error;
static enum healcl_status answers[SIDES];

/* ---------------------------------------------------------------- both sides */

/* Both sides have answered the same. Returns the status. */
static enum healcl_status agree(const char *what)
{
    const enum healcl_status status = answers[REFERENCE];
    const struct healcl_error *a = &errors[REFERENCE], *b = &errors[DEVICE];
    const bool same = strcmp(a->message, b->message) == 0 && a->cause == b->cause &&
                      a->entry == b->entry && a->operation == b->operation &&
                      a->argument == b->argument;
    if (answers[DEVICE] != status || (status != HEALCL_OK && !same)) {
        fprintf(stderr, "%s: reference %s '%s', device %s '%s'\n", what, healcl_status_name(status),
                a->message, healcl_status_name(answers[DEVICE]), b->message);
        abort();
    }
    for (int i = 0; i < SIDES; i++) {
        EXPECT(status == HEALCL_OK || (*errors[i].message && !strchr(errors[i].message, '\n')));
        healcl_error_clear(&errors[i]);
    }
    return status;
}

/* A call of either side, with `side` and `error` in it. */
#define BOTH(what, call)                                                             \
    (side = REFERENCE, error = &errors[side], answers[side] = (call), side = DEVICE, \
     error = &errors[side], answers[side] = (call), agree(what))

static struct healcl_device *on(void)
{
    return side == REFERENCE ? NULL : fuzz_device(0);
}

/* ---------------------------------------------------------------- sessions */

struct state {
    struct bytes bytes;
    const struct program *program;
    struct healcl_transcript *transcript;
    const struct healcl_tensor_info *inputs, *results;
    size_t input_count, result_count;
    struct healcl_session *sessions[SIDES];
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

/* The device's results are audited, now and then. */
static void open_sessions(struct state *state)
{
    static const double shares[] = {0, 1, 0.25, 0.02};
    struct healcl_session_options options[SIDES] = {
        {.keep_nothing = take_below(&state->bytes, 3) == 1}};
    close_sessions(state);
    options[DEVICE] = options[REFERENCE];
    options[DEVICE].audit_share = shares[take_below(&state->bytes, 4)];
    EXPECT(BOTH("open", healcl_session_open(state->transcript, on(), &options[side],
                                            &state->sessions[side], error)) == HEALCL_OK);
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
}

/* Runs all segments, or count of them, and reads all that is there then. */
static void run_and_read(struct state *state, bool all, size_t first, size_t count)
{
    (void)BOTH("run",
               all ? healcl_session_run(state->sessions[side], error)
                   : healcl_session_run_segments(state->sessions[side], first, count, error));
    read_all(state);
}

/* State of a callback at the end of a background run: it may read results, and any thread
 * cancels. */
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
    for (side = 0; cancels && side < SIDES; side++)
        healcl_session_cancel(state->sessions[side]);
    EXPECT(BOTH("bind", healcl_session_bind(state->sessions[side], 0, NULL, error)) ==
           HEALCL_USAGE);
    for (side = 0; side < SIDES; side++) {
        (void)healcl_session_poll(state->sessions[side]);
        (void)healcl_session_facts(state->sessions[side]);
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
    size_t differences;
    uint32_t asked, cancelled_at; /* from 1 on; 0: never */
};

static bool on_question(void *context)
{
    struct observed *observed = context;
    EXPECT(observed->cancelled_at == 0 || observed->asked < observed->cancelled_at);
    return ++observed->asked == observed->cancelled_at;
}

static void on_difference(void *context, const char *line)
{
    EXPECT(*line);
    ((struct observed *)context)->differences++;
}

/* Compares runs that an observer may cancel: both sides ask at different rates. */
static void expect_cancelled(struct observed observed[SIDES], struct healcl_report *reports[SIDES])
{
    for (int i = 0; i < SIDES; i++) {
        const bool cancelled = observed[i].asked == observed[i].cancelled_at;
        EXPECT(cancelled == (answers[i] == HEALCL_CANCELLED));
        EXPECT((answers[i] == HEALCL_OK) == (reports[i] != NULL));
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
    options.observer =
        (struct healcl_observer){.difference = on_difference, .cancelled = on_question};
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

/* ---------------------------------------------------------------- an input */

static void act(struct state *state)
{
    EXPECT(healcl_transcript_open_memory(state->program->writer.bytes,
                                         state->program->writer.length, NULL, &state->transcript,
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
    const size_t half = size / 2;
    struct state state = {.bytes = {data + half, size - half},
                          .program = &program,
                          .buffers = {buffers[0], buffers[1]}};
    memset(buffers, 1, sizeof buffers);
    program_make(&program, data, half, false, NULL);
    if (program.entries > 0)
        act(&state);
    program_release(&program);
    return 0;
}
