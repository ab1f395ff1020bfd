#include "cli/requests.h"

#include <stdlib.h>
#include <string.h>

#include "check/failing_case.h"
#include "core/array.h"
#include "core/clock.h"
#include "plan/transcript.h"
#include "run/audit.h"
#include "run/compare.h"
#include "transcript/npy.h"

/* ---------------------------------------------------------------- options */

static int add(const struct command *command, char ***texts, size_t *count, size_t *capacity,
               const char *text)
{
    char *copy = strdup(text);
    if (!copy || !ARRAY_GROW(*texts, *count, capacity)) {
        free(copy);
        return usage_error(command, "out of memory");
    }
    (*texts)[(*count)++] = copy;
    return EXIT_VERIFIED;
}

int live_inputs_add(const struct command *command, struct live_inputs *live, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return usage_error(command, "--input takes ENTRY=FILE.npy, not '%.200s'", text);
    return add(command, &live->texts, &live->count, &live->capacity, text);
}

int live_inputs_keep(const struct command *command, struct live_inputs *live, const char *segment)
{
    return add(command, &live->segments, &live->segment_count, &live->segment_capacity, segment);
}

void live_inputs_free(struct live_inputs *live)
{
    for (size_t i = 0; i < live->count; i++) {
        free(live->texts[i]);
        if (live->inputs)
            free((void *)(uintptr_t)live->inputs[i].data);
    }
    for (size_t i = 0; i < live->segment_count; i++)
        free(live->segments[i]);
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
    live->inputs = calloc(live->count + 1, sizeof *live->inputs);
    if (!live->inputs)
        NO_MEMORY(error);
    for (size_t i = 0; i < live->count; i++) {
        const char *text = live->texts[i];
        int length = (int)strcspn(text, "=");
        size_t input = 0;
        TRY(find_input(transcript, "input", text, (size_t)length, &input, error));
        const struct tensor *tensor = transcript->input_steps[input]->out;
        void *data = malloc(transcript->inputs[input].bytes);
        live->inputs[i] = (struct healcl_input){input, data};
        if (!data)
            NO_MEMORY(error);
        TRY_PREFIX(
            npy_read_file(text + length + 1, tensor->storage->dtype, &tensor->layout, data, error),
            "--input %.*s: ", length < 100 ? length : 100, text);
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- requests */

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

static enum healcl_status prepare(struct healcl_session *session,
                                  const struct healcl_transcript *transcript,
                                  const struct live_inputs *live, struct healcl_error *error)
{
    for (size_t i = 0; live->segment_count > 0 && i < transcript->plan->uploads; i++) {
        size_t segment = transcript->inputs[i].segment;
        bool keep = is_kept_segment(live, transcript->plan->segments[segment].name);
        TRY(healcl_session_keep(session, i, keep, error));
    }
    for (size_t i = 0; i < live->count; i++)
        TRY(healcl_session_bind(session, live->inputs[i].input, live->inputs[i].data, error));
    return HEALCL_OK;
}

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

static enum healcl_status run_all(struct healcl_session *session,
                                  const struct healcl_transcript *transcript,
                                  void (*began)(void *context, uint32_t number), void *context,
                                  struct request_facts *facts, struct healcl_error *error)
{
    for (uint32_t i = 0; i <= facts->count; i++) {
        if (began)
            began(context, i);
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
            TRY(compare(session, transcript, facts, error));
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- requests together */

/* What batches of requests are made of. All requests have the same inputs. */
struct batches {
    const struct healcl_transcript *transcript;
    struct healcl_batcher *batcher;
    size_t input_count;
    size_t *inputs;    /* that come with requests, by number */
    const void **data; /* of these */
    void **owned;      /* of these: data that have been read from the transcript; or NULL */
    bool guesses;      /* which inputs are live, where nobody says it */
    size_t most;       /* requests of a batch */
    struct healcl_request *requests;
    void **results; /* of one request after the other; NULL: not compared */
};

static bool is_live(const struct live_inputs *live, const struct healcl_transcript *transcript,
                    size_t input, const void **data)
{
    *data = NULL;
    for (size_t i = 0; i < live->count; i++)
        if (live->inputs[i].input == input)
            *data = live->inputs[i].data;
    const size_t segment = transcript->inputs[input].segment;
    return *data || (live->segment_count > 0 &&
                     !is_kept_segment(live, transcript->plan->segments[segment].name));
}

/* HEAL's compilers call so the segments that upload a request's ciphertexts. */
static bool uploads_ciphertexts(const struct healcl_transcript *transcript, size_t input)
{
    static const char name[] = "upload_ct";
    const size_t segment = transcript->inputs[input].segment;
    return strncmp(transcript->plan->segments[segment].name, name, sizeof name - 1) == 0;
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

/* The inputs of --input, and with --keep those of segments that are not kept, with the file's data.
 */
static enum healcl_status find_inputs(struct batches *batches, const struct live_inputs *live,
                                      struct healcl_error *error)
{
    const struct healcl_transcript *transcript = batches->transcript;
    const size_t count = transcript->plan->uploads;
    batches->inputs = calloc(count + 1, sizeof *batches->inputs);
    batches->data = calloc(count + 1, sizeof *batches->data);
    batches->owned = calloc(count + 1, sizeof *batches->owned);
    if (!batches->inputs || !batches->data || !batches->owned)
        NO_MEMORY(error);
    for (size_t input = 0; input < count; input++) {
        const struct step *step = transcript->input_steps[input];
        const size_t at = batches->input_count;
        if (!is_live(live, transcript, input, &batches->data[at]) &&
            !(batches->guesses && is_guessed_live(transcript, input)))
            continue;
        batches->inputs[batches->input_count++] = input;
        if (batches->data[at])
            continue;
        batches->data[at] = batches->owned[at] = malloc(transcript->inputs[input].bytes);
        if (!batches->owned[at])
            NO_MEMORY(error);
        TRY(payload_read(step->payload, step->out->storage->dtype, batches->owned[at], error));
    }
    return HEALCL_OK;
}

/* The requests of a batch, with memory for results that are compared. */
static enum healcl_status make_requests(struct batches *batches, bool compares,
                                        struct healcl_error *error)
{
    const struct healcl_transcript *transcript = batches->transcript;
    const size_t results = transcript->plan->results;
    batches->most = healcl_batcher_facts(batches->batcher).batch;
    batches->requests = calloc(batches->most, sizeof *batches->requests);
    batches->results = calloc(batches->most * (results + 1), sizeof *batches->results);
    if (!batches->requests || !batches->results)
        NO_MEMORY(error);
    for (size_t i = 0; i < batches->most; i++) {
        void **own = batches->results + i * results;
        batches->requests[i] = (struct healcl_request){.inputs = batches->data, .results = own};
        for (size_t j = 0; compares && j < results; j++) {
            if (!transcript->results[j].has_data)
                continue;
            own[j] = malloc(transcript->results[j].bytes + 1);
            if (!own[j])
                NO_MEMORY(error);
        }
    }
    return HEALCL_OK;
}

static void release_batches(struct batches *batches)
{
    const size_t results = batches->transcript->plan->results;
    healcl_batcher_close(batches->batcher);
    for (size_t i = 0; batches->results && i < batches->most * results; i++)
        free(batches->results[i]);
    for (size_t i = 0; i < batches->input_count; i++)
        free(batches->owned[i]);
    free(batches->results);
    free(batches->requests);
    free(batches->owned);
    free(batches->data);
    free(batches->inputs);
}

/* Compares what a request has made. A request that was refused is the command's error. */
static enum healcl_status end_request(const struct batches *batches, struct healcl_request *request,
                                      struct request_facts *facts, struct healcl_error *error)
{
    if (request->status != HEALCL_OK) {
        *error = request->error;
        request->error = (struct healcl_error){.detail = NULL};
        return request->status;
    }
    for (size_t i = 0; i < batches->transcript->plan->results; i++) {
        const struct step *step = batches->transcript->result_steps[i];
        struct comparison comparison;
        if (!request->results[i])
            continue;
        TRY(compare_result(&step->in[0]->layout, step->in[0]->storage->dtype, request->results[i],
                           step->payload, &comparison, error));
        facts->compared++;
        if (comparison_is_equal(&comparison))
            continue;
        facts->different++;
        TRY(source_check(batches->transcript->plan->source, error));
    }
    return HEALCL_OK;
}

/* Runs so many requests, up to a batch. */
static enum healcl_status run_batch(struct batches *batches, size_t count, uint64_t *end,
                                    struct request_facts *facts, struct healcl_error *error)
{
    TRY(healcl_batcher_run(batches->batcher, batches->requests, count, error));
    *end = monotonic_nanoseconds();
    for (size_t i = 0; i < count; i++)
        TRY(end_request(batches, &batches->requests[i], facts, error));
    return HEALCL_OK;
}

/* The first batch uploads what is kept, and compiles kernels; then come facts->count requests. */
static enum healcl_status run_batches(struct batches *batches,
                                      void (*began)(void *context, uint32_t number), void *context,
                                      struct request_facts *facts, struct healcl_error *error)
{
    uint64_t start = monotonic_nanoseconds(), end;
    TRY(run_batch(batches, batches->most, &end, facts, error));
    const struct healcl_batcher_facts first = healcl_batcher_facts(batches->batcher);
    facts->first_nanoseconds = end - start;
    facts->first_bytes_uploaded = first.bytes_uploaded;
    while (facts->done < facts->count) {
        if (began)
            began(context, facts->done + 1);
        const size_t left = facts->count - facts->done;
        const size_t count = left < batches->most ? left : batches->most;
        start = monotonic_nanoseconds();
        TRY(run_batch(batches, count, &end, facts, error));
        facts->spent_nanoseconds += end - start;
        for (size_t i = 0; i < count; i++)
            facts->nanoseconds[facts->done++] = batches->requests[i].nanoseconds;
    }
    facts->batches = healcl_batcher_facts(batches->batcher);
    facts->batches.runs -= first.runs;
    facts->batches.requests_together -= first.requests_together;
    facts->batches.requests_alone -= first.requests_alone;
    for (size_t i = 0; i < batches->input_count; i++)
        facts->bytes_uploaded += batches->transcript->inputs[batches->inputs[i]].bytes;
    facts->fallbacks = facts->batches.fallbacks;
    facts->device_bytes = facts->batches.device_bytes;
    return HEALCL_OK;
}

static enum healcl_status run_together(const struct healcl_transcript *transcript,
                                       struct healcl_device *device, const struct live_inputs *live,
                                       void (*began)(void *context, uint32_t number), void *context,
                                       struct request_facts *facts, struct healcl_error *error)
{
    struct batches batches = {.transcript = transcript};
    struct healcl_batcher_options options = {.batch = facts->batch};
    enum healcl_status status = find_inputs(&batches, live, error);
    if (status == HEALCL_OK && batches.input_count == 0)
        status = ERROR(error, HEALCL_USAGE,
                       "--batch: no input comes with requests: --input or --keep says which do");
    options.inputs = batches.inputs;
    options.input_count = batches.input_count;
    if (status == HEALCL_OK)
        status = healcl_batcher_open(transcript, device, &options, &batches.batcher, error);
    if (status == HEALCL_OK)
        status = make_requests(&batches, !facts->no_verify, error);
    if (status == HEALCL_OK)
        status = run_batches(&batches, began, context, facts, error);
    release_batches(&batches);
    return status;
}

/* ---------------------------------------------------------------- audits */

/* The session's lists, which live no longer than it does. */
static enum healcl_status keep_audit(const struct healcl_session *session,
                                     struct request_audit *audit, struct healcl_error *error)
{
    audit->facts = healcl_session_audit(session);
    const size_t count = audit->facts.kernel_count;
    audit->kernels = calloc(count + 1, sizeof *audit->kernels);
    if (!audit->kernels)
        NO_MEMORY(error);
    for (size_t i = 0; i < count; i++) {
        audit->kernels[i] = audit->facts.kernels[i];
        audit->kernels[i].name = strdup(audit->facts.kernels[i].name);
        if (audit->facts.difference &&
            audit->facts.difference->kernel == audit->facts.kernels[i].name)
            audit->kernel = audit->kernels[i].name;
        if (!audit->kernels[i].name)
            NO_MEMORY(error);
    }
    audit->facts.kernels = audit->kernels;
    if (audit->facts.difference)
        audit->difference = *audit->facts.difference;
    audit->difference.kernel = audit->kernel;
    audit->facts.difference = audit->facts.difference ? &audit->difference : NULL;
    return HEALCL_OK;
}

/* The smallest part of what differed that the device gets wrong again, or where it gets nothing
 * wrong, as with a fault that comes and goes, what was audited. */
static void find_case(const struct healcl_transcript *transcript, struct healcl_device *device,
                      struct audit_failure failure, struct failing_case *found)
{
    struct failing_step failing = {.plan = transcript->plan,
                                   .step = &failure.slice->step,
                                   .out_before = failure.before[STEP_OUT],
                                   .first_wrong = failure.element};
    for (int i = 0; i < STEP_INPUTS; i++)
        failing.inputs[i] = failure.before[i];
    failing_case_find(device, &failing, found);
}

static enum healcl_status end_audit(struct healcl_session *session,
                                    const struct healcl_transcript *transcript,
                                    struct healcl_device *device, struct request_audit *audit,
                                    struct healcl_error *error)
{
    TRY(keep_audit(session, audit, error));
    if (audit->facts.difference)
        find_case(transcript, device, session_audit_failure(session), &audit->smallest);
    return HEALCL_OK;
}

void requests_release(struct request_facts *facts)
{
    struct request_audit *audit = &facts->audit;
    for (size_t i = 0; audit->kernels && i < audit->facts.kernel_count; i++)
        free((void *)(uintptr_t)audit->kernels[i].name);
    free(audit->kernels);
    free(audit->smallest.transcript);
    healcl_error_clear(&audit->error);
    free(facts->nanoseconds);
}

/* A difference is told in the report. */
static enum healcl_status run_audited(struct healcl_session *session,
                                      const struct healcl_transcript *transcript,
                                      struct healcl_device *device,
                                      void (*began)(void *context, uint32_t number), void *context,
                                      struct request_facts *facts, struct healcl_error *error)
{
    enum healcl_status status = run_all(session, transcript, began, context, facts, error);
    if (facts->audit.share == 0 || (status != HEALCL_OK && status != HEALCL_DIFFERENT))
        return status;
    if (status == HEALCL_DIFFERENT && error) {
        facts->audit.error = *error;
        *error = (struct healcl_error){.status = HEALCL_OK};
    }
    return end_audit(session, transcript, device, &facts->audit, error);
}

enum healcl_status requests_run(const struct healcl_transcript *transcript,
                                struct healcl_device *device, const struct live_inputs *live,
                                void (*began)(void *context, uint32_t number), void *context,
                                struct request_facts *facts, struct healcl_error *error)
{
    struct healcl_session *session = NULL;
    facts->nanoseconds = calloc(facts->count + (size_t)1, sizeof *facts->nanoseconds);
    if (!facts->nanoseconds)
        NO_MEMORY(error);
    TRY(check_segments(live, transcript, error));
    if (facts->batch > 0)
        return run_together(transcript, device, live, began, context, facts, error);
    const struct healcl_session_options options = {.audit_share = facts->audit.share,
                                                   .audit_seed = facts->audit.seed};
    TRY(healcl_session_open(transcript, device, &options, &session, error));
    enum healcl_status status = prepare(session, transcript, live, error);
    if (status == HEALCL_OK)
        status = run_audited(session, transcript, device, began, context, facts, error);
    healcl_session_close(session);
    return status;
}

enum healcl_status requests_run_steady(const struct healcl_transcript *transcript,
                                       struct healcl_device *device, const struct live_inputs *live,
                                       struct request_facts *facts, struct healcl_error *error)
{
    struct batches inputs = {.transcript = transcript,
                             .guesses = live->count == 0 && live->segment_count == 0};
    struct healcl_session *session = NULL;
    facts->nanoseconds = calloc(facts->count + (size_t)1, sizeof *facts->nanoseconds);
    if (!facts->nanoseconds)
        NO_MEMORY(error);
    TRY(check_segments(live, transcript, error));
    enum healcl_status status = find_inputs(&inputs, live, error);
    if (status == HEALCL_OK)
        status = healcl_session_open(transcript, device, NULL, &session, error);
    for (size_t i = 0; status == HEALCL_OK && i < inputs.input_count; i++)
        status = healcl_session_bind(session, inputs.inputs[i], inputs.data[i], error);
    if (status == HEALCL_OK)
        status = run_all(session, transcript, NULL, NULL, facts, error);
    healcl_session_close(session);
    release_batches(&inputs);
    return status;
}
