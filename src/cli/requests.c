#include "cli/requests.h"

#include <stdlib.h>
#include <string.h>

#include "check/xmalloc.h"
#include "core/clock.h"
#include "plan/transcript.h"
#include "run/compare.h"
#include "transcript/npy.h"

/* ---------------------------------------------------------------- options */

static void add(const char ***texts, size_t *count, const char *text)
{
    *texts = xrealloc(*texts, *count + 1, sizeof **texts);
    (*texts)[(*count)++] = text;
}

int live_inputs_add(const struct command *command, struct live_inputs *live, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return usage_error(command, "--input takes ENTRY=FILE.npy, not '%.200s'", text);
    add(&live->texts, &live->count, text);
    return EXIT_VERIFIED;
}

int live_inputs_keep(struct live_inputs *live, const char *segment)
{
    add(&live->segments, &live->segment_count, segment);
    return EXIT_VERIFIED;
}

void live_inputs_free(struct live_inputs *live)
{
    for (size_t i = 0; live->inputs && i < live->count; i++)
        free((void *)(uintptr_t)live->inputs[i].data);
    free(live->texts);
    free(live->inputs);
    free(live->segments);
}

/* ---------------------------------------------------------------- inputs */

static bool is_named(const struct healcl_tensor_info *info, const char *name, size_t length)
{
    const char *own = info->name;
    size_t own_length = strlen(own);
    if (own_length >= 2 && *own == '"') {
        own++;
        own_length -= 2;
    }
    return own_length == length && strncmp(own, name, length) == 0;
}

/* Behind a prefix; false where it is not there. */
static bool skip_prefix(const char **text, size_t *length, const char *prefix)
{
    const size_t size = strlen(prefix);
    if (*length < size || memcmp(*text, prefix, size) != 0)
        return false;
    *text += size;
    *length -= size;
    return true;
}

enum healcl_status find_input(const struct healcl_transcript *transcript, const char *option,
                              const char *text, size_t length, size_t *input,
                              struct healcl_error *error)
{
    const char *const whole = text;
    const int shown = length < 100 ? (int)length : 100;
    const bool by_entry = skip_prefix(&text, &length, "entry:");
    const bool by_name = !by_entry && skip_prefix(&text, &length, "name:");
    size_t count = 0, entry = 0, found = 0;
    const struct healcl_tensor_info *inputs = healcl_transcript_inputs(transcript, &count);
    const bool is_number =
        !by_name && length > 0 && length < 19 && strspn(text, "0123456789") >= length;
    for (size_t i = 0; is_number && i < length; i++)
        entry = entry * 10 + (size_t)(text[i] - '0');
    for (size_t i = 0; i < count; i++) {
        if (!(is_number && inputs[i].entry == entry) &&
            (by_entry || !is_named(&inputs[i], text, length)))
            continue;
        if (found++ > 0)
            FAIL(error, HEALCL_USAGE,
                 "--%s: '%.*s' is ambiguous: it names entries %zu and %zu; 'entry:%zu' or "
                 "'entry:%zu' says which",
                 option, shown, whole, inputs[*input].entry, inputs[i].entry, inputs[*input].entry,
                 inputs[i].entry);
        *input = i;
    }
    if (found == 0)
        FAIL(error, HEALCL_USAGE,
             "--%s: no host_to_device is entry %.*s, or makes a tensor of that name", option, shown,
             whole);
    return HEALCL_OK;
}

enum healcl_status find_split(const struct healcl_transcript *transcript, const char *text,
                              struct healcl_split *split, struct healcl_error *error)
{
    const char *colon = strrchr(text, ':');
    if (!colon)
        FAIL(error, HEALCL_USAGE, "--split takes ENTRY:AXIS, not '%.200s'", text);
    split->axis = 0;
    if (strcmp(colon, ":0") != 0 && !parse_count(colon + 1, UINT32_MAX, &split->axis))
        FAIL(error, HEALCL_USAGE, "--split takes ENTRY:AXIS, not '%.200s'", text);
    return find_input(transcript, "split", text, (size_t)(colon - text), &split->input, error);
}

enum healcl_status live_inputs_read(struct live_inputs *live,
                                    const struct healcl_transcript *transcript,
                                    struct healcl_error *error)
{
    live->inputs = xcalloc(live->count, sizeof *live->inputs);
    for (size_t i = 0; i < live->count; i++) {
        const char *text = live->texts[i];
        int length = (int)strcspn(text, "=");
        size_t input = 0;
        TRY(find_input(transcript, "input", text, (size_t)length, &input, error));
        const struct tensor *tensor = transcript->input_steps[input]->out;
        void *data = xmalloc(transcript->inputs[input].bytes);
        live->inputs[i] = (struct healcl_input){input, data};
        TRY_PREFIX(
            npy_read_file(text + length + 1, tensor->storage->dtype, &tensor->layout, data, error),
            "--input %.*s: ", length < 100 ? length : 100, text);
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- live inputs of requests */

/* What runs requests. All of them have the same inputs. */
struct requests {
    const struct healcl_transcript *transcript;
    struct request_facts *facts;
    const struct request_observer *observer;
    size_t input_count;
    size_t *inputs;    /* that come with requests, by number */
    const void **data; /* of these */
    void **owned;      /* of these: data that have been read from the transcript; or NULL */
    /* Of batches. */
    struct healcl_batcher *batcher;
    size_t most; /* requests of a batch */
    struct healcl_request *batch;
    void **results; /* of one request after the other; NULL: not compared */
};

static const char *segment_of(const struct healcl_transcript *transcript, size_t input)
{
    return transcript->plan->segments[transcript->inputs[input].segment].name;
}

static bool is_kept_segment(const struct live_inputs *live, const char *name)
{
    for (size_t i = 0; i < live->segment_count; i++)
        if (strcmp(live->segments[i], name) == 0)
            return true;
    return false;
}

static enum healcl_status check_segments(const struct live_inputs *live,
                                         const struct healcl_transcript *transcript,
                                         struct healcl_error *error)
{
    for (size_t i = 0; i < live->segment_count; i++) {
        size_t s = 0;
        while (s < transcript->plan->segment_count &&
               strcmp(transcript->plan->segments[s].name, live->segments[i]) != 0)
            s++;
        if (s == transcript->plan->segment_count)
            FAIL(error, HEALCL_USAGE, "--keep: there is no segment '%.200s'", live->segments[i]);
    }
    return HEALCL_OK;
}

/* HEAL's compilers call so the segments that upload a request's ciphertexts. */
static bool uploads_ciphertexts(const struct healcl_transcript *transcript, size_t input)
{
    return strncmp(segment_of(transcript, input), "upload_ct", strlen("upload_ct")) == 0;
}

/* Where the options name neither inputs nor segments: the ciphertexts, or all of the last segment
 * that uploads. */
static bool is_guessed_live(const struct healcl_transcript *transcript, size_t input)
{
    const size_t count = transcript->plan->uploads;
    for (size_t i = 0; i < count; i++)
        if (uploads_ciphertexts(transcript, i))
            return uploads_ciphertexts(transcript, input);
    return transcript->inputs[input].segment == transcript->inputs[count - 1].segment;
}

/* *data: of a file of --input, or NULL. */
static bool is_live(const struct live_inputs *live, const struct healcl_transcript *transcript,
                    size_t input, const void **data)
{
    *data = NULL;
    for (size_t i = 0; i < live->count; i++)
        if (live->inputs[i].input == input)
            *data = live->inputs[i].data;
    if (*data || (live->count == 0 && live->segment_count == 0))
        return *data || is_guessed_live(transcript, input);
    return live->segment_count > 0 && !is_kept_segment(live, segment_of(transcript, input));
}

static enum healcl_status find_inputs(struct requests *requests, const struct live_inputs *live,
                                      struct healcl_error *error)
{
    const struct healcl_transcript *transcript = requests->transcript;
    const size_t count = transcript->plan->uploads;
    TRY(check_segments(live, transcript, error));
    requests->inputs = xcalloc(count, sizeof *requests->inputs);
    requests->data = xcalloc(count, sizeof *requests->data);
    requests->owned = xcalloc(count, sizeof *requests->owned);
    for (size_t input = 0; input < count; input++) {
        const struct step *step = transcript->input_steps[input];
        const size_t at = requests->input_count;
        if (!is_live(live, transcript, input, &requests->data[at]))
            continue;
        requests->inputs[requests->input_count++] = input;
        if (requests->data[at])
            continue;
        requests->data[at] = requests->owned[at] = xmalloc(transcript->inputs[input].bytes);
        TRY(payload_read(step->payload, step->out->storage->dtype, requests->owned[at], error));
    }
    return HEALCL_OK;
}

static void begin(const struct requests *requests, uint32_t number)
{
    if (requests->observer)
        requests->observer->began(requests->observer->context, number);
}

/* ---------------------------------------------------------------- one by one */

static enum healcl_status compare(struct healcl_session *session,
                                  const struct healcl_transcript *transcript,
                                  struct request_facts *facts, struct healcl_error *error)
{
    for (size_t i = 0; i < transcript->plan->results; i++) {
        uint64_t different = 0;
        if (!transcript->results[i].has_data)
            continue;
        TRY(healcl_session_compare(session, i, &different, error));
        facts->compared++;
        facts->different += different > 0;
    }
    return HEALCL_OK;
}

static enum healcl_status run_all(const struct requests *requests, struct healcl_error *error)
{
    struct request_facts *facts = requests->facts;
    struct healcl_session *session = facts->session;
    for (size_t i = 0; i < requests->input_count; i++)
        TRY(healcl_session_bind(session, requests->inputs[i], requests->data[i], error));
    for (uint32_t i = 0; i <= facts->count; i++) {
        begin(requests, i);
        const uint64_t start = monotonic_nanoseconds();
        TRY(healcl_session_run(session, error));
        const uint64_t end = monotonic_nanoseconds();
        struct healcl_session_facts of_session = healcl_session_facts(session);
        if (i == 0) {
            facts->first_nanoseconds = end - start;
            facts->first_bytes_uploaded = of_session.bytes_uploaded;
        } else {
            facts->spent_nanoseconds += end - start;
            facts->nanoseconds[facts->done++] = end - start;
            facts->bytes_uploaded = of_session.bytes_uploaded;
            facts->fallbacks = of_session.fallbacks;
        }
        facts->device_bytes = of_session.device_bytes;
        if (!facts->no_verify)
            TRY(compare(session, requests->transcript, facts, error));
    }
    return HEALCL_OK;
}

/* What an audit finds to differ is told in the report. */
static enum healcl_status run_session(struct requests *requests, struct healcl_device *device,
                                      struct healcl_error *error)
{
    struct request_facts *facts = requests->facts;
    struct request_audit *audit = &facts->audit;
    const struct healcl_session_options options = {.audit_share = audit->share,
                                                   .audit_seed = audit->seed};
    TRY(healcl_session_open(requests->transcript, device, &options, &facts->session, error));
    enum healcl_status status = run_all(requests, error);
    if (audit->share == 0 || (status != HEALCL_OK && status != HEALCL_DIFFERENT))
        return status;
    if (status == HEALCL_DIFFERENT) {
        audit->error = *error;
        *error = (struct healcl_error){.status = HEALCL_OK};
    }
    audit->facts = healcl_session_audit(facts->session);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- together */

/* The requests of a batch, with memory for results that are compared. */
static void make_batch(struct requests *requests)
{
    const struct healcl_transcript *transcript = requests->transcript;
    const size_t results = transcript->plan->results;
    requests->most = healcl_batcher_facts(requests->batcher).batch;
    requests->batch = xcalloc(requests->most, sizeof *requests->batch);
    requests->results = xcalloc(requests->most * results, sizeof *requests->results);
    for (size_t i = 0; i < requests->most; i++) {
        void **own = requests->results + i * results;
        requests->batch[i] = (struct healcl_request){.inputs = requests->data, .results = own};
        for (size_t j = 0; !requests->facts->no_verify && j < results; j++)
            if (transcript->results[j].has_data)
                own[j] = xmalloc(transcript->results[j].bytes);
    }
}

/* Compares what a request has made. A request that was refused is the command's error. */
static enum healcl_status end_request(const struct requests *requests,
                                      struct healcl_request *request, struct healcl_error *error)
{
    const struct healcl_transcript *transcript = requests->transcript;
    if (request->status != HEALCL_OK) {
        *error = request->error;
        request->error = (struct healcl_error){.detail = NULL};
        return request->status;
    }
    for (size_t i = 0; i < transcript->plan->results; i++) {
        const struct step *step = transcript->result_steps[i];
        struct comparison comparison;
        if (!request->results[i])
            continue;
        TRY(compare_result(&step->in[0]->layout, step->in[0]->storage->dtype, request->results[i],
                           step->payload, &comparison, error));
        requests->facts->compared++;
        if (comparison_is_equal(&comparison))
            continue;
        requests->facts->different++;
        TRY(source_check(transcript->plan->source, error));
    }
    return HEALCL_OK;
}

/* Runs so many requests, up to a batch. */
static enum healcl_status run_batch(const struct requests *requests, size_t count,
                                    uint64_t *nanoseconds, struct healcl_error *error)
{
    const uint64_t start = monotonic_nanoseconds();
    TRY(healcl_batcher_run(requests->batcher, requests->batch, count, error));
    *nanoseconds = monotonic_nanoseconds() - start;
    for (size_t i = 0; i < count; i++)
        TRY(end_request(requests, &requests->batch[i], error));
    return HEALCL_OK;
}

/* The first batch uploads what is kept, and compiles kernels; then come facts->count requests. */
static enum healcl_status run_batches(struct requests *requests, struct healcl_device *device,
                                      struct healcl_error *error)
{
    struct request_facts *facts = requests->facts;
    const struct healcl_batcher_options options = {.batch = facts->batch,
                                                   .inputs = requests->inputs,
                                                   .input_count = requests->input_count};
    if (requests->input_count == 0)
        FAIL(error, HEALCL_USAGE, "--batch: no input comes with requests");
    TRY(healcl_batcher_open(requests->transcript, device, &options, &requests->batcher, error));
    make_batch(requests);
    TRY(run_batch(requests, requests->most, &facts->first_nanoseconds, error));
    const struct healcl_batcher_facts first = healcl_batcher_facts(requests->batcher);
    facts->first_bytes_uploaded = first.bytes_uploaded;
    while (facts->done < facts->count) {
        const size_t left = facts->count - facts->done;
        const size_t count = left < requests->most ? left : requests->most;
        uint64_t nanoseconds;
        begin(requests, facts->done + 1);
        TRY(run_batch(requests, count, &nanoseconds, error));
        facts->spent_nanoseconds += nanoseconds;
        for (size_t i = 0; i < count; i++)
            facts->nanoseconds[facts->done++] = requests->batch[i].nanoseconds;
    }
    facts->batches = healcl_batcher_facts(requests->batcher);
    facts->batches.runs -= first.runs;
    facts->batches.requests_together -= first.requests_together;
    facts->batches.requests_alone -= first.requests_alone;
    for (size_t i = 0; i < requests->input_count; i++)
        facts->bytes_uploaded += requests->transcript->inputs[requests->inputs[i]].bytes;
    facts->fallbacks = facts->batches.fallbacks;
    facts->device_bytes = facts->batches.device_bytes;
    return HEALCL_OK;
}

static void release(const struct requests *requests)
{
    healcl_batcher_close(requests->batcher);
    for (size_t i = 0; i < requests->most * requests->transcript->plan->results; i++)
        free(requests->results[i]);
    for (size_t i = 0; i < requests->input_count; i++)
        free(requests->owned[i]);
    free(requests->results);
    free(requests->batch);
    free(requests->owned);
    free(requests->data);
    free(requests->inputs);
}

/* ---------------------------------------------------------------- */

enum healcl_status requests_run(const struct healcl_transcript *transcript,
                                struct healcl_device *device, const struct live_inputs *live,
                                const struct request_observer *observer,
                                struct request_facts *facts, struct healcl_error *error)
{
    struct requests requests = {.transcript = transcript, .facts = facts, .observer = observer};
    facts->nanoseconds = xcalloc(facts->count, sizeof *facts->nanoseconds);
    enum healcl_status status = find_inputs(&requests, live, error);
    if (status == HEALCL_OK)
        status = facts->batch > 0 ? run_batches(&requests, device, error)
                                  : run_session(&requests, device, error);
    release(&requests);
    if (facts->audit.share == 0) {
        healcl_session_close(facts->session);
        facts->session = NULL;
    }
    return status;
}

void requests_release(struct request_facts *facts)
{
    healcl_session_close(facts->session);
    healcl_error_clear(&facts->audit.error);
    free(facts->nanoseconds);
}
