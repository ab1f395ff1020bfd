#include "cli/requests.h"

#include "cli/progress.h"
#include "core/clock.h"
#include "core/numbers.h"
#include "run/loaded_transcript.h"
#include "transcript/npy.h"

/* ---------------------------------------------------------------- options */

int take_request_input(const struct command *command, const struct command_option *option,
                       void *self, const char *text)
{
    struct request_inputs *live = (void *)((char *)self + option->member);
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return usage_error(command, "--input takes ENTRY=FILE.npy, not '%.200s'", text);
    words_add(&live->texts, text);
    return EXIT_VERIFIED;
}

void request_inputs_free(struct request_inputs *live)
{
    for (size_t i = 0; live->inputs && i < live->texts.count; i++)
        free((void *)(uintptr_t)live->inputs[i].data);
    free(live->inputs);
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

enum healcl_status find_input(const struct healcl_transcript *transcript, const char *option,
                              const char *text, size_t length, size_t *input,
                              struct healcl_error *error)
{
    const int shown = length < 100 ? (int)length : 100;
    const bool by_entry = length > 6 && strncmp(text, "entry:", 6) == 0;
    const bool by_name = length > 5 && strncmp(text, "name:", 5) == 0;
    const size_t prefix = by_entry ? 6 : by_name ? 5 : 0, rest = length - prefix;
    const char *key = text + prefix;
    const bool is_number = !by_name && rest > 0 && rest < 19 && strspn(key, "0123456789") >= rest;
    const size_t entry = is_number ? strtoull(key, NULL, 10) : 0;
    size_t count = 0, found = 0;
    const struct healcl_tensor_info *inputs = healcl_transcript_inputs(transcript, &count);
    for (size_t i = 0; i < count; i++) {
        if (!(is_number && inputs[i].entry == entry) &&
            (by_entry || !is_named(&inputs[i], key, rest)))
            continue;
        if (found++ > 0)
            FAIL(error, HEALCL_USAGE,
                 "--%s: '%.*s' is ambiguous: it names entries %zu and %zu; write 'entry:%zu' or "
                 "'entry:%zu'",
                 option, shown, text, inputs[*input].entry, inputs[i].entry, inputs[*input].entry,
                 inputs[i].entry);
        *input = i;
    }
    if (found == 0)
        FAIL(error, HEALCL_USAGE,
             "--%s: '%.*s' is neither the entry nor the tensor of a host_to_device", option, shown,
             text);
    return HEALCL_OK;
}

enum healcl_status find_split(const struct healcl_transcript *transcript, const char *text,
                              struct healcl_split *split, struct healcl_error *error)
{
    const char *colon = strrchr(text, ':');
    split->axis = 0;
    if (!colon || (strcmp(colon, ":0") != 0 && !parse_count(colon + 1, UINT32_MAX, &split->axis)))
        FAIL(error, HEALCL_USAGE, "--split takes ENTRY:AXIS, not '%.200s'", text);
    return find_input(transcript, "split", text, (size_t)(colon - text), &split->input, error);
}

enum healcl_status request_inputs_read(struct request_inputs *live,
                                       const struct healcl_transcript *transcript,
                                       struct healcl_error *error)
{
    live->inputs = xcalloc(live->texts.count, sizeof *live->inputs);
    for (size_t i = 0; i < live->texts.count; i++) {
        const char *text = live->texts.of[i];
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

/* ---------------------------------------------------------------- inputs of requests */

/* A run of requests that all have the same inputs. */
struct requests {
    const struct healcl_transcript *transcript;
    struct request_facts *facts;
    size_t input_count;
    struct live_input { /* each request brings it */
        size_t number;
        const void *data;
        void *owned; /* the data, if they were read from the transcript; or NULL */
    } * inputs;
};

static const char *segment_of(const struct healcl_transcript *transcript, size_t input)
{
    return transcript->plan->segments[transcript->inputs[input].segment].name;
}

static bool is_resident_segment(const struct request_inputs *live, const char *name)
{
    for (size_t i = 0; i < live->segments.count; i++)
        if (strcmp(live->segments.of[i], name) == 0)
            return true;
    return false;
}

static enum healcl_status check_segments(const struct request_inputs *live,
                                         const struct healcl_transcript *transcript,
                                         struct healcl_error *error)
{
    for (size_t i = 0; i < live->segments.count; i++) {
        size_t s = 0;
        while (s < transcript->plan->segment_count &&
               strcmp(transcript->plan->segments[s].name, live->segments.of[i]) != 0)
            s++;
        if (s == transcript->plan->segment_count)
            FAIL(error, HEALCL_USAGE, "--keep: there is no segment '%.200s'", live->segments.of[i]);
    }
    return HEALCL_OK;
}

/* HEAL's compilers give this name to segments that upload a request's ciphertexts. */
static bool uploads_ciphertexts(const struct healcl_transcript *transcript, size_t input)
{
    return strncmp(segment_of(transcript, input), "upload_ct", strlen("upload_ct")) == 0;
}

/* The default inputs, if options name neither inputs nor segments: the ciphertexts, or the uploads
 * of the last segment that uploads. */
static bool is_guessed_live(const struct healcl_transcript *transcript, size_t input)
{
    const size_t count = transcript->plan->uploads;
    for (size_t i = 0; i < count; i++)
        if (uploads_ciphertexts(transcript, i))
            return uploads_ciphertexts(transcript, input);
    return transcript->inputs[input].segment == transcript->inputs[count - 1].segment;
}

/* *data: of a file of --input, or NULL. */
static bool is_live(const struct request_inputs *live, const struct healcl_transcript *transcript,
                    size_t input, const void **data)
{
    *data = NULL;
    for (size_t i = 0; i < live->texts.count; i++)
        if (live->inputs[i].input == input)
            *data = live->inputs[i].data;
    if (*data || (live->texts.count == 0 && live->segments.count == 0))
        return *data || is_guessed_live(transcript, input);
    return live->segments.count > 0 && !is_resident_segment(live, segment_of(transcript, input));
}

static enum healcl_status find_inputs(struct requests *requests, const struct request_inputs *live,
                                      struct healcl_error *error)
{
    const struct healcl_transcript *transcript = requests->transcript;
    const size_t count = transcript->plan->uploads;
    TRY(check_segments(live, transcript, error));
    requests->inputs = xcalloc(count, sizeof *requests->inputs);
    for (size_t number = 0; number < count; number++) {
        const struct step *step = transcript->input_steps[number];
        struct live_input *input = &requests->inputs[requests->input_count];
        if (!is_live(live, transcript, number, &input->data))
            continue;
        requests->input_count++;
        input->number = number;
        if (input->data)
            continue;
        input->data = input->owned = xmalloc(transcript->inputs[number].bytes);
        TRY(payload_read(step->payload, step->out->storage->dtype, input->owned, error));
    }
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- requests */

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
        TRY(healcl_session_bind(session, requests->inputs[i].number, requests->inputs[i].data,
                                error));
    for (uint32_t i = 0; i <= facts->count; i++) {
        progress_say("request %" PRIu32 " of %" PRIu32, i, facts->count);
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

/* The report shows a difference that an audit found. */
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
        error_move(&audit->error, error);
    }
    audit->facts = healcl_session_audit(facts->session);
    return HEALCL_OK;
}

enum healcl_status requests_run(const struct healcl_transcript *transcript,
                                struct healcl_device *device, const struct request_inputs *live,
                                struct request_facts *facts, struct healcl_error *error)
{
    struct requests requests = {.transcript = transcript, .facts = facts};
    facts->nanoseconds = xcalloc(facts->count, sizeof *facts->nanoseconds);
    enum healcl_status status = find_inputs(&requests, live, error);
    THEN(status, run_session(&requests, device, error));
    for (size_t i = 0; i < requests.input_count; i++)
        free(requests.inputs[i].owned);
    free(requests.inputs);
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

/* ---------------------------------------------------------------- JSON */

void report_add_rates(cJSON *object, uint64_t *nanoseconds, size_t count, uint64_t all)
{
    const uint64_t median = count > 0 ? sort_to_median(nanoseconds, count) : 0;
    JSON_ADD(object,
             DECIMAL("requests_per_second", all > 0 ? (double)count * 1e9 / (double)all : 0));
    JSON_ADD(json_add_object(object, "latency_ns"), NUMBER("median", median),
             NUMBER("p95", sorted_percentile(nanoseconds, count, 95)),
             NUMBER("p99", sorted_percentile(nanoseconds, count, 99)),
             NUMBER("longest", sorted_percentile(nanoseconds, count, 100)));
}

static void add_difference(cJSON *object, const struct request_audit *audit)
{
    const struct healcl_audit_difference *difference = audit->facts.difference;
    JSON_ADD(object, NUMBER("entry", difference->entry), STRING("op", difference->operation),
             NUMBER("step", difference->step), STRING("kernel", difference->kernel),
             NUMBER("element", difference->element), STRING("index", difference->index),
             INTEGER("actual", difference->actual), INTEGER("expected", difference->expected),
             NUMBER("different", difference->different), NUMBER("compared", difference->compared),
             STRING("message", audit->error.message));
}

static void add_audit(cJSON *document, const struct request_audit *audit)
{
    const struct healcl_audit_facts *facts = &audit->facts;
    const uint64_t all = facts->run_nanoseconds;
    cJSON *object = json_add_object(document, "audit");
    JSON_ADD(object,
             STRING("verdict", facts->difference   ? "differs"
                               : facts->audits > 0 ? "agrees"
                                                   : "nothing audited"),
             DECIMAL("share", audit->share),
             DECIMAL("share_taken", all > 0 ? (double)facts->nanoseconds / (double)all : 0),
             NUMBER("steps", facts->steps), NUMBER("steps_audited", facts->steps_audited),
             NUMBER("steps_left_out", facts->steps_left_out), NUMBER("audits", facts->audits),
             NUMBER("elements", facts->elements), NUMBER("ns", facts->nanoseconds));
    cJSON *kernels = json_add_array(object, "kernels");
    for (size_t i = 0; i < facts->kernel_count; i++)
        JSON_ADD(json_add_object(kernels, NULL), STRING("name", facts->kernels[i].name),
                 NUMBER("steps", facts->kernels[i].steps),
                 NUMBER("steps_audited", facts->kernels[i].steps_audited),
                 NUMBER("audits", facts->kernels[i].audits),
                 NUMBER("elements", facts->kernels[i].elements));
    if (facts->difference)
        add_difference(json_add_object(object, "difference"), audit);
}

cJSON *report_requests(const char *file, const struct device_info *device,
                       const struct request_facts *facts)
{
    cJSON *document = report_of(file, device);
    json_add_number(document, "requests", facts->done);
    report_add_rates(document, facts->nanoseconds, facts->done, facts->spent_nanoseconds);
    JSON_ADD(document, NUMBER("bytes_uploaded", facts->bytes_uploaded),
             NUMBER("fallbacks", facts->fallbacks), NUMBER("first_ns", facts->first_nanoseconds),
             NUMBER("first_bytes_uploaded", facts->first_bytes_uploaded),
             NUMBER("device_bytes", facts->device_bytes),
             NUMBER("results_compared", facts->compared),
             NUMBER("results_different", facts->different));
    if (facts->audit.share > 0)
        add_audit(document, &facts->audit);
    return document;
}

/* ---------------------------------------------------------------- text */

void report_requests_text(const cJSON *document, const struct style *style)
{
    static const struct view_line lines[] = {
        {"requests", "{requests}, {requests_per_second:factor} a second"},
        {"latency", "median {latency_ns.median:time}, p95 {latency_ns.p95:time}, p99 "
                    "{latency_ns.p99:time}, longest {latency_ns.longest:time}"},
        {"upload", "{bytes_uploaded:bytes} by each"},
        {"first", "{first_ns:time}, with an upload of {first_bytes_uploaded:bytes}"},
        {"memory", "{device_bytes:bytes} on {device.name}"},
        {"on the host", "{fallbacks:#?} steps of the last request"},
        {"audited", "{audit.audits:#?} runs of a step, {audit.elements} elements, in "
                    "{audit.ns:time}, {audit.share_taken:%} of the time"},
        {"covered", "{audit.steps_audited} of {audit.steps} steps"},
        {"not audited", "{audit.steps_left_out:#?} steps of the transcript"},
        {"differs", "entry {audit.difference.entry} ({audit.difference.op}), step "
                    "{audit.difference.step} ({audit.difference.kernel}) at "
                    "{audit.difference.index}: {audit.difference.actual}, expected "
                    "{audit.difference.expected}"},
        {"results", "{results_compared:#?} compared, {results_different} differ"}};
    VIEW_LINES(style, document, lines);
    if (json_number_at(document, "results_compared") == 0)
        report_label(style, "results", "none compared");
    if (json_is(document, "audit.verdict", "nothing audited"))
        report_label(style, "audited", "nothing: too few requests, or too small a share");
}
