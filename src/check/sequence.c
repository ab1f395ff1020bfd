#include "check/sequence.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/random.h"
#include "check/writer.h"
#include "core/clock.h"
#include "plan/passes.h"
#include "run/device_executor.h"

/* Of everything random here; and the sizes of shapes beside n and k. */
enum { SEQUENCE_SEED = 0x5e9e4ce, REPS = 2, TERMS = 3 };

/* ---------------------------------------------------------------- sequences */

static const struct sequence listed[] = {
#define STEP_NONE STEP_KINDS
#define SEQUENCE(pass, kind, name, calls) {name, #pass, STEP_##kind, {0}, calls},
#include "check/sequences.def"
#undef SEQUENCE
#undef STEP_NONE
};

enum { LISTED = sizeof listed / sizeof *listed };

/* The kind of that number among those that chain; STEP_KINDS behind the last one. */
static int chained_kind(size_t number)
{
    int kind = 0;
    while (kind < STEP_KINDS && (!step_traits[kind].chains || number-- > 0))
        kind++;
    return kind;
}

/* Passes drop a remainder of what is below the modulus anyway. */
static bool is_dropped(int first, int second)
{
    return second == STEP_MOD && step_traits[first].signs == 0;
}

bool sequence_at(size_t number, struct sequence *sequence)
{
    size_t chained = 0;
    while (chained_kind(chained) < STEP_KINDS)
        chained++;
    if (number < LISTED) {
        *sequence = listed[number];
        return true;
    }
    number -= LISTED;
    if (number >= chained * chained)
        return false;
    *sequence = (struct sequence){
        .pass = "chains", .of = {chained_kind(number / chained), chained_kind(number % chained)}};
    sequence->kind = is_dropped(sequence->of[0], sequence->of[1]) ? STEP_KINDS : STEP_CHAIN;
    snprintf(sequence->name, sizeof sequence->name, "%s, then %s",
             step_traits[sequence->of[0]].operation, step_traits[sequence->of[1]].operation);
    return true;
}

const char *sequence_call_text(const struct sequence_call *call, char text[SEQUENCE_CALL_SIZE])
{
    snprintf(text, SEQUENCE_CALL_SIZE, "%s, n %" PRId64 ", k %" PRId64 ", variant %" PRIu32,
             dtype_name(call->dtype), call->n, call->k, call->variant);
    return text;
}

/* ---------------------------------------------------------------- tensors */

/* How all tensors lie in what is uploaded. */
enum upload_layout { UPLOAD_PACKED, UPLOAD_STRIDED, UPLOAD_TRANSPOSED, UPLOAD_LAYOUTS };

static enum upload_layout upload_layout_of(const struct sequence_call *call)
{
    return (enum upload_layout)(call->variant % UPLOAD_LAYOUTS);
}

static bool is_tame(const struct sequence_call *call)
{
    return call->variant % 2 == 0;
}

static const struct input {
    const char *name, *sizes;
    enum { VALUES, FACTORS, MODULI, PERMUTATION, INDICES } contents;
} inputs[] = {{"a", "rsnk", VALUES},  {"c", "rsnk", VALUES},   {"w", "rs1k", VALUES},
              {"b", "snk", VALUES},   {"x", "rnk", VALUES},    {"y", "rnk", VALUES},
              {"z", "rnk", VALUES},   {"q", "k", MODULI},      {"f", "k", FACTORS},
              {"psi", "kn", FACTORS}, {"i", "n", PERMUTATION}, {"g", "rnk", INDICES}};

enum { INPUTS = sizeof inputs / sizeof *inputs };

static struct layout shape_of(const char *sizes, const struct sequence_call *call)
{
    int64_t shape[LAYOUT_RANK];
    uint32_t rank = 0;
    for (; *sizes && !isspace((unsigned char)*sizes) && *sizes != '|'; sizes++)
        shape[rank++] = *sizes == 'r'   ? REPS
                        : *sizes == 's' ? TERMS
                        : *sizes == 'n' ? call->n
                        : *sizes == 'k' ? call->k
                                        : 1;
    return layout_of_shape(rank, shape);
}

/* Only values that have reps lie otherwise than packed: whole tensors are moduli and tables. */
static bool is_view(const struct input *input, const struct sequence_call *call)
{
    return upload_layout_of(call) != UPLOAD_PACKED && input->contents == VALUES;
}

/* What is uploaded: the tensor, or what it is a view of. */
static struct layout base_of(const struct input *input, const struct sequence_call *call)
{
    struct layout base = shape_of(input->sizes, call);
    const int64_t last = base.shape[base.rank - 1];
    if (is_view(input, call) && upload_layout_of(call) == UPLOAD_STRIDED)
        base.shape[base.rank - 1] = 2 * last + 1;
    if (is_view(input, call) && upload_layout_of(call) == UPLOAD_TRANSPOSED) {
        base.shape[base.rank - 1] = base.shape[base.rank - 2];
        base.shape[base.rank - 2] = last;
    }
    return layout_packed(&base);
}

static void *make_data(const struct input *input, const struct sequence_call *call,
                       struct random *random)
{
    const struct layout base = base_of(input, call);
    const int64_t count = layout_elements(&base);
    const int bits = call->dtype == DTYPE_INT32 ? 31 : 63;
    const int64_t half = INT64_C(1) << (bits - 2);
    void *data = malloc((size_t)count * dtype_size(call->dtype) + 1);
    if (!data)
        return NULL;
    if (input->contents == PERMUTATION)
        random_fill_permutation(random, call->dtype, count, data);
    else if (input->contents == INDICES)
        random_fill_between(random, call->dtype, count, 0, call->n - 1, data);
    else if (input->contents == MODULI && is_tame(call))
        random_fill_between(random, call->dtype, count, half, 2 * half - 1, data);
    else if (input->contents == MODULI)
        random_fill_moduli(random, call->dtype, count, data);
    else if (is_tame(call))
        random_fill_tame(random, call->dtype, count, half - 1, input->contents == VALUES, data);
    else
        random_fill_values(random, call->dtype, count, data);
    return data;
}

/* ---------------------------------------------------------------- transcripts */

static void put_input(struct writer *writer, const struct input *input,
                      const struct sequence_call *call)
{
    char name[16];
    const struct layout base = base_of(input, call);
    snprintf(name, sizeof name, "base_%s", input->name);
    writer_declare(writer, name, call->dtype, &base);
    if (!is_view(input, call))
        writer_call(writer, input->name, "new_reference", "%s", name);
    else if (upload_layout_of(call) == UPLOAD_STRIDED)
        writer_call(writer, input->name, "get_slice", "%s [...,1::2]", name);
    else
        writer_call(writer, input->name, "moveaxis", "%s -2 -1", name);
}

enum { CALL_SIZE = 256 };

/* The arguments of a call as the writer takes them: shapes and dtypes in the place of letters. */
static void put_arguments(char text[CALL_SIZE], const char *from, const struct sequence_call *call)
{
    size_t used = 0;
    while (*from && *from != '|' && used < CALL_SIZE - SHAPE_TEXT_SIZE) {
        char shape[SHAPE_TEXT_SIZE];
        if (*from == '$') {
            const struct layout layout = shape_of(from + 1, call);
            used += (size_t)sprintf(text + used, "%s", layout_shape_text(&layout, shape));
            from += strcspn(from, " |");
        } else if (strncmp(from, ":T", 2) == 0) {
            used += (size_t)sprintf(text + used, ":%s", dtype_name(call->dtype));
            from += 2;
        } else {
            text[used++] = *from++;
        }
    }
    text[used] = 0;
}

/* One call, up to '|' or the end. */
static void put_call(struct writer *writer, const char *text, const struct sequence_call *call)
{
    char out[16] = "", operation[32] = "", arguments[CALL_SIZE];
    const size_t length = strcspn(text, "=| ");
    if (*text == '-') {
        snprintf(out, sizeof out, "%.*s", (int)strcspn(text + 1, "|"), text + 1);
        writer_entry(writer, "FREE_DEVICE_TENSOR", "tensor_name", out);
        return;
    }
    if (text[length] == '=') {
        snprintf(out, sizeof out, "%.*s", (int)length, text);
        text += length + 1;
    }
    snprintf(operation, sizeof operation, "%.*s", (int)strcspn(text, " "), text);
    put_arguments(arguments, text + strcspn(text, " ") + 1, call);
    writer_call(writer, *out ? out : NULL, operation, "%s", arguments);
}

static void put_calls(struct writer *writer, const char *text, const struct sequence_call *call)
{
    for (; *text; text += *text == '|') {
        put_call(writer, text, call);
        text += strcspn(text, "|");
    }
}

/* An elementwise step's operation on a and b. */
static void put_elementwise(struct writer *writer, int kind, const char *a, const char *b,
                            const char *out)
{
    if (step_traits[kind].inputs[1])
        writer_call(writer, NULL, step_traits[kind].operation, "%s %s q %s", a, b, out);
    else
        writer_call(writer, NULL, step_traits[kind].operation, "%s q %s", a, out);
}

/* Two operations of a chain: of anything, or in place with the first one's result as the second
 * operand, or of residues. A product of what comes of it tells a sign that is not as it is known.
 */
static void put_chain(struct writer *writer, const struct sequence *sequence,
                      const struct sequence_call *call)
{
    const bool in_place = call->variant / 2 % 3 == 1, residues = call->variant / 2 % 3 == 2;
    const bool has_second = step_traits[sequence->of[1]].inputs[1] != NULL;
    if (residues) {
        writer_call(writer, NULL, "modneg", "x q x");
        writer_call(writer, NULL, "modneg", "y q y");
        writer_call(writer, NULL, "modneg", "z q z");
    }
    if (in_place) {
        put_elementwise(writer, sequence->of[0], "x", "y", "z");
        put_elementwise(writer, sequence->of[1], has_second ? "y" : "z", "z", "z");
    } else {
        put_calls(writer, "t=empty $rnk :T", call);
        put_elementwise(writer, sequence->of[0], "x", "y", "t");
        put_elementwise(writer, sequence->of[1], "t", "z", "z");
        put_calls(writer, "-t", call);
    }
    writer_call(writer, NULL, "modmul", "z y q y");
}

static char *transcript_of(const struct sequence *sequence, const struct sequence_call *call)
{
    struct writer writer = {0};
    writer_entry(&writer, "SEGMENT_START", "name", "prepare");
    for (size_t i = 0; i < INPUTS; i++)
        put_input(&writer, &inputs[i], call);
    writer_entry(&writer, "SEGMENT_END", NULL, NULL);
    writer_entry(&writer, "SEGMENT_START", "name", "sequence");
    if (sequence->calls)
        put_calls(&writer, sequence->calls, call);
    else
        put_chain(&writer, sequence, call);
    writer_entry(&writer, "SEGMENT_END", NULL, NULL);
    writer_entry(&writer, "SEGMENT_START", "name", "results");
    for (size_t i = 0; i < INPUTS; i++) { /* with what lies between elements: nobody writes there */
        char name[16];
        snprintf(name, sizeof name, "base_%s", inputs[i].name);
        if (inputs[i].contents == VALUES)
            writer_download(&writer, name, DTYPE_INT64, NULL, NULL);
    }
    writer_entry(&writer, "SEGMENT_END", NULL, NULL);
    return writer_finish(&writer);
}

/* ---------------------------------------------------------------- runs */

/* One call on both sides. */
struct attempt {
    const struct sequence *sequence;
    const struct sequence_call *call;
    char *text;
    struct source source;
    void *data[INPUTS];
    void *answers[INPUTS];
    size_t answer_count, compared;
    struct healcl_error difference; /* of the first result that differs */
};

/* A sink. */
static enum healcl_status keep_answer(void *context, const struct step *step, const void *data,
                                      struct healcl_error *error)
{
    struct attempt *attempt = context;
    const size_t bytes = (size_t)packed_bytes(step->in[0]);
    void *kept = malloc(bytes + 1);
    if (!kept)
        NO_MEMORY(error);
    memcpy(kept, data, bytes);
    attempt->answers[attempt->answer_count++] = kept;
    return HEALCL_OK;
}

/* What the result of a number was uploaded as. */
static const char *result_name(size_t number)
{
    size_t i = 0;
    while (inputs[i].contents != VALUES || number-- > 0)
        i++;
    return inputs[i].name;
}

/* A sink. */
static enum healcl_status compare_answer(void *context, const struct step *step, const void *data,
                                         struct healcl_error *error)
{
    (void)error;
    struct attempt *attempt = context;
    const size_t number = attempt->compared++;
    const void *expected = attempt->answers[number];
    const enum dtype dtype = step->in[0]->storage->dtype;
    char index[SHAPE_TEXT_SIZE];
    int64_t i = 0;
    if (attempt->difference.status != HEALCL_OK ||
        memcmp(data, expected, (size_t)packed_bytes(step->in[0])) == 0)
        return HEALCL_OK;
    while (dtype_load(dtype, data, i) == dtype_load(dtype, expected, i))
        i++;
    (void)ERROR(&attempt->difference, HEALCL_DIFFERENT,
                "the memory of %s is %" PRId64 ", not %" PRId64 ", at %s", result_name(number),
                dtype_load(dtype, data, i), dtype_load(dtype, expected, i),
                layout_index_text(&step->in[0]->layout, i, index));
    return HEALCL_OK;
}

/* Inputs are declared in their order. */
static enum healcl_status bind(const struct attempt *attempt, const struct plan *plan,
                               struct upload **uploads, struct healcl_error *error)
{
    size_t input = 0;
    *uploads = calloc(plan->storage_count + 1, sizeof **uploads);
    if (!*uploads)
        NO_MEMORY(error);
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == STEP_UPLOAD)
            (*uploads)[plan->steps[i].out->storage->id].data = attempt->data[input++];
    return HEALCL_OK;
}

/* Whether a step of the kind is in the segment "sequence". */
static bool has_made(const struct plan *plan, int kind)
{
    for (size_t i = 0; i < plan->step_count; i++)
        if ((int)plan->steps[i].kind == kind)
            return true;
    return kind == STEP_KINDS;
}

/* On the host reference without a device, and without passes. */
static enum healcl_status run_plan(struct attempt *attempt, struct healcl_device *device,
                                   const struct plan *plan, struct healcl_error *error)
{
    const struct result_sink sink = {.context = attempt,
                                     .take = device ? compare_answer : keep_answer};
    struct upload *uploads = NULL;
    struct executor *executor = NULL;
    enum healcl_status status = bind(attempt, plan, &uploads, error);
    if (status == HEALCL_OK)
        status = device ? device_executor_create(device, plan, false, &executor, error)
                        : reference_executor_create(plan, &executor, error);
    if (status == HEALCL_OK) {
        executor->uploads = uploads;
        status = executor_run(executor, plan, &sink, error);
    }
    /* What data reveal is no limit of the device: the reference has not met it. */
    if (status == HEALCL_REFUSED && device && executor && device_executor_has_refused(executor))
        status = error->status = HEALCL_DIFFERENT;
    if (executor)
        executor->class->destroy(executor);
    free(uploads);
    return status;
}

static enum healcl_status plan_and_run(struct attempt *attempt, struct healcl_device *device,
                                       bool *made, struct healcl_error *error)
{
    struct plan *plan = NULL;
    enum healcl_status status = plan_create(&attempt->source, NULL, NULL, &plan, error);
    if (status == HEALCL_OK && device) {
        status = plan_optimise(plan, PASSES_ALL, error);
        *made = has_made(plan, attempt->sequence->kind);
    }
    if (status == HEALCL_REFUSED) /* each is valid */
        status = error->status = HEALCL_DIFFERENT;
    if (status == HEALCL_OK)
        status = run_plan(attempt, device, plan, error);
    plan_free(plan);
    return status;
}

static enum healcl_status prepare(struct attempt *attempt, struct healcl_error *error)
{
    struct random random = {SEQUENCE_SEED + attempt->call->variant};
    attempt->text = transcript_of(attempt->sequence, attempt->call);
    if (!attempt->text)
        NO_MEMORY(error);
    attempt->source = (struct source){.text = attempt->text, .length = strlen(attempt->text)};
    for (size_t i = 0; i < INPUTS; i++) {
        attempt->data[i] = make_data(&inputs[i], attempt->call, &random);
        if (!attempt->data[i])
            NO_MEMORY(error);
    }
    return HEALCL_OK;
}

static enum healcl_status attempt_call(struct attempt *attempt, struct healcl_device *device,
                                       bool *made, struct healcl_error *error)
{
    TRY(prepare(attempt, error));
    enum healcl_status status = plan_and_run(attempt, NULL, made, error);
    if (status != HEALCL_OK) {
        error_prefix(error, "the host reference: ");
        return status == HEALCL_REFUSED ? (error->status = HEALCL_DIFFERENT) : status;
    }
    TRY(plan_and_run(attempt, device, made, error));
    if (attempt->difference.status != HEALCL_OK)
        FAIL(error, HEALCL_DIFFERENT, "%s", attempt->difference.message);
    return HEALCL_OK;
}

static void attempt_release(struct attempt *attempt)
{
    for (size_t i = 0; i < INPUTS; i++) {
        free(attempt->data[i]);
        free(attempt->answers[i]);
    }
    free(attempt->text);
    healcl_error_clear(&attempt->difference);
}

static void check_call(struct healcl_device *device, const struct sequence_call *call,
                       struct sequence_check *check)
{
    struct healcl_error error = {.status = HEALCL_OK};
    struct attempt attempt = {.sequence = &check->sequence, .call = call};
    bool made = false;
    const enum healcl_status status = attempt_call(&attempt, device, &made, &error);
    if (check_count(&check->counts, status, &error, &check->why))
        check->call = *call;
    check->made += made;
    attempt_release(&attempt);
}

void sequence_check(struct healcl_device *device, bool quick, struct sequence_check *check)
{
    static const int64_t sizes[][2] = {/* n, k; the quick ones come first */
                                       {2, 3},   {16, 1},  {512, 3},  {2, 1},    {16, 3},  {16, 8},
                                       {512, 1}, {512, 8}, {8192, 1}, {8192, 3}, {8192, 8}};
    const size_t count = quick ? 3 : sizeof sizes / sizeof *sizes;
    const uint64_t begin = monotonic_nanoseconds();
    for (size_t i = 0; i < count; i++)
        for (int wide = 0; wide < 2; wide++)
            for (uint32_t variant = 0; variant < SEQUENCE_VARIANTS; variant++) {
                const struct sequence_call call = {wide ? DTYPE_INT64 : DTYPE_INT32, sizes[i][0],
                                                   sizes[i][1], variant};
                if (check->why.status != HEALCL_NO_MEMORY)
                    check_call(device, &call, check);
            }
    check->nanoseconds = monotonic_nanoseconds() - begin;
}
