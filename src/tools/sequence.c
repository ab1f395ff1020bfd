#include "tools/sequence.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/problem_check.h"
#include "tools/results.h"
#include "tools/xmalloc.h"

enum { SEQUENCE_SEED = 0x5e9e4ce, DIGITS = 3, FIRST_SIZES = 3, ALL_SIZES = 12 };
enum { LINES_MOST = 64 }; /* lines of one letter */

/* Steps of sequences that each pass changes, in the order of passes.def. */
static const uint64_t expected_changes[PASS_COUNT] = {1826, 686, 514, 2796, 1296, 726, 2187};

extern const char healcl_tools_sequences_txt[]; /* embedded file; its comments explain the format */

/* The layouts of values: contiguous, every other element, n contiguous, or the second axis next to
 * the last. */
enum { PACKED, STRIDED, SWAPPED, INNER, LAYOUTS };
static const char *const layout_names[LAYOUTS] = {"packed", "every other one", "n in order",
                                                  "the second axis beside the last"};

/* A sequence that is being made. */
struct sequence {
    struct random random;
    uint32_t number, passes;
    int64_t r, s, n, k;
    enum dtype dtype;
    int layout; /* of a, b and x */
    bool is_tame;
    int slice;
    const char *drawn[26]; /* alternatives, the last ones */
    struct writer calls;
};

/* ---------------------------------------------------------------- expansion */

/* Finds the next line, from `line` on, that consists of one letter. NULL: there is none. */
static const char *find_line(const char *line, char letter)
{
    while (*line && (*line != letter || !isspace((unsigned char)line[1])))
        line = strchr(line, '\n') + 1;
    return *line ? line : NULL;
}

/* Chooses an alternative. For a chain, the sequence's number determines it. */
static const char *draw(struct sequence *self, char letter)
{
    const char *found[LINES_MOST];
    int64_t count = 0;
    for (const char *line = healcl_tools_sequences_txt; (line = find_line(line, letter)); line++)
        found[count++] = line;
    if (count == 0)
        return "";
    const char *line = found[letter == 'Y'   ? self->number % count
                             : letter == 'Z' ? self->number / 4 % count
                                             : random_between(&self->random, 0, count - 1)];
    return line + 1 + (line[1] == ' ');
}

static int64_t number_of(const struct sequence *self, char letter)
{
    const int64_t most = (self->s + DIGITS - 1) / DIGITS;
    switch (letter) {
    case 'r': return self->r;
    case 's': return self->s;
    case 'n': return self->n;
    case 'k': return self->k;
    case 't': return most;
    case 'f': return 2 * most;
    case '#': return self->slice;
    case '^': return self->slice + 1;
    case '~': return self->slice + 1 < DIGITS ? most : self->s - (DIGITS - 1) * most;
    default: return letter - '0';
    }
}

/* Writes one alternative, and replaces the letters in it by alternatives. */
static void expand(struct sequence *self, const char *text)
{
    for (; *text && *text != '\n'; text++) {
        const bool is_letter = strchr("$&", *text) && isupper((unsigned char)text[1]);
        if (is_letter) {
            const char **drawn = &self->drawn[text[1] - 'A'];
            *drawn = *text == '$' ? draw(self, text[1]) : *drawn;
            text++;
            expand(self, *drawn);
        } else if (*text == '%') {
            writer_put(&self->calls, "%s", dtype_name(self->dtype));
        } else if (*text == '@') {
            self->slice = *++text - '0';
        } else if (strchr("$#^~", *text)) {
            writer_put(&self->calls, "%" PRId64, number_of(self, *text == '$' ? *++text : *text));
        } else {
            writer_put(&self->calls, "%c", *text);
        }
    }
}

enum dtype sequence_dtype(uint32_t number)
{
    return number / 48 % 2 ? DTYPE_INT32 : DTYPE_INT64;
}

static struct sequence make(uint32_t number)
{
    struct sequence self = {.random = {SEQUENCE_SEED + number}, .number = number};
    const bool is_first = number < SEQUENCES_FIRST;
    const char *size = find_line(healcl_tools_sequences_txt, ':');
    for (uint32_t i = number / 16 % (is_first ? FIRST_SIZES : ALL_SIZES); i > 0; i--)
        size = find_line(size + 1, ':');
    (void)!sscanf(size, ": %" SCNd64 "%" SCNd64 "%" SCNd64 "%" SCNd64, &self.r, &self.s, &self.n,
                  &self.k);
    self.dtype = sequence_dtype(number);
    self.layout = (int)random_between(&self.random, 0, LAYOUTS - 1);
    self.is_tame = random_once_in(&self.random, 2);
    const uint32_t some = (uint32_t)random_bits(&self.random) & PASSES_ALL;
    self.passes = random_once_in(&self.random, 4) ? some : PASSES_ALL;
    expand(&self, "$C");
    for (int left = is_first ? 3 : 8; left > 0; left--)
        expand(&self, "$S");
    return self;
}

/* ---------------------------------------------------------------- transcripts */

/* Contents: values v, moduli m, a permutation p, indices i. */
static void put_data(struct sequence *self, struct writer *writer, const char *name, char contents,
                     const struct layout *shape)
{
    struct problem_tensor tensor = {.dtype = self->dtype, .shape = *shape};
    const int64_t half = INT64_C(1) << (8 * dtype_size(self->dtype) - 3);
    void *data = xcalloc((size_t)layout_elements(shape), dtype_size(self->dtype));
    tensor.contents = contents == 'p'                     ? CONTENTS_PERMUTATION
                      : contents == 'm' && !self->is_tame ? CONTENTS_MODULI
                      : contents != 'v'                   ? CONTENTS_BETWEEN
                      : self->is_tame                     ? CONTENTS_TAME
                                                          : CONTENTS_VALUES;
    tensor.low = contents == 'm' ? half : 0;
    tensor.high = contents == 'i' ? self->n - 1 : contents == 'm' ? 2 * half - 1 : half - 1;
    problem_fill(&tensor, &self->random, data);
    /* Sometimes a modulus that must be refused. */
    if (name[0] == 'p' && random_once_in(&self->random, 8))
        dtype_store(self->dtype, data, 0, random_between(&self->random, -1, 0));
    writer_upload(writer, name, self->dtype, shape, false, data);
    free(data);
}

/* Writes a line of inputs: "a0 rsnk v". Without data it uploads nothing. */
static void put_input(struct sequence *self, struct writer *writer, const char *line, bool has_data)
{
    char name[8] = "", sizes[8] = "", base[16], contents = 'v', text[SHAPE_TEXT_SIZE];
    int64_t shape[LAYOUT_RANK] = {1};
    uint32_t rank = 0;
    (void)!sscanf(line, "< %7s %7s %c", name, sizes, &contents);
    self->slice = name[1] - '0';
    for (; sizes[rank]; rank++)
        shape[rank] = number_of(self, sizes[rank] == 'u' ? '~' : sizes[rank]);
    const int layout = strchr("abx", name[0]) ? self->layout : PACKED;
    /* This axis comes one position later. */
    const uint32_t from = layout == SWAPPED ? rank - 2 : rank - 3;
    const int64_t size = shape[layout < SWAPPED ? 0 : from];
    if (layout == STRIDED)
        shape[rank - 1] = 2 * shape[rank - 1] + 1;
    if (layout >= SWAPPED) {
        shape[from] = shape[from + 1];
        shape[from + 1] = size;
    }
    const struct layout held = layout_of_shape(rank, shape);
    snprintf(base, sizeof base, layout == PACKED ? "%s" : "base_%s", name);
    if (has_data)
        put_data(self, writer, base, contents, &held);
    else
        writer_call(writer, base, "empty", "%s :%s", layout_shape_text(&held, text),
                    dtype_name(self->dtype));
    if (layout == STRIDED)
        writer_call(writer, name, "get_slice", "%s [...,1::2]", base);
    else if (layout != PACKED)
        writer_call(writer, name, "moveaxis", "%s %d %d", base, (int)from, (int)from + 1);
}

/* Writes "out=operation arguments;", "-name;" or "!name;". */
static void put_call(struct writer *writer, const char *call)
{
    char name[16] = "", operation[32], arguments[128];
    if (sscanf(call, "-%15[^;]", name) == 1)
        writer_entry(writer, "FREE_DEVICE_TENSOR", "tensor_name", name);
    else if (sscanf(call, "!%15[^;]", name) == 1)
        writer_download(writer, name, DTYPE_INT64, NULL, NULL);
    else if (sscanf(call, "%15[^ =]=%31s %127[^;]", name, operation, arguments) == 3)
        writer_call(writer, name, operation, "%s", arguments);
    else if (sscanf(call, "%31s %127[^;]", operation, arguments) == 2)
        writer_call(writer, NULL, operation, "%s", arguments);
}

/* Values are downloaded at the end, with the bytes between their elements, which must not be
 * written. */
static char *transcript_of(struct sequence *self, bool has_data)
{
    struct writer writer = {0};
    const char *const first = find_line(healcl_tools_sequences_txt, '<'), *line;
    writer_entry(&writer, "SEGMENT_START", "name", "prepare");
    for (line = first; line; line = find_line(line + 1, '<'))
        put_input(self, &writer, line, has_data);
    writer_entry(&writer, "SEGMENT_END", NULL, NULL);
    writer_entry(&writer, "SEGMENT_START", "name", "sequence");
    for (const char *call = self->calls.bytes; *call; call = strchr(call, ';') + 1)
        put_call(&writer, call);
    for (line = first; strchr("abx", line[2]); line = find_line(line + 1, '<')) {
        char name[16];
        snprintf(name, sizeof name, self->layout == PACKED ? "%.2s" : "base_%.2s", line + 2);
        writer_download(&writer, name + strlen(name) - 2, DTYPE_INT64, NULL, NULL);
        writer_download(&writer, name, DTYPE_INT64, NULL, NULL);
    }
    writer_entry(&writer, "SEGMENT_END", NULL, NULL);
    return writer_finish(&writer);
}

/* ---------------------------------------------------------------- both sides */

/* Plans a sequence with passes. The caller releases it, also on failure. */
static enum healcl_status plan_fused(struct sequence *self, bool has_data, struct planned *fused,
                                     struct healcl_error *error)
{
    enum healcl_status status =
        planned_init(fused, transcript_of(self, has_data), NULL, NULL, error);
    if (status == HEALCL_OK)
        status = plan_optimise(fused->plan, self->passes, error);
    return status == HEALCL_REFUSED ? problem_refused(error) : status;
}

static enum healcl_status compare(const struct results *actual, const struct results *expected,
                                  struct healcl_error *error)
{
    for (size_t i = 0; i < expected->count; i++) {
        const struct result *result = &expected->of[i];
        const struct difference difference =
            difference_of(result->dtype, actual->of[i].bytes, result->bytes, result->size);
        if (difference.found)
            FAIL(error, HEALCL_DIFFERENT, "element %" PRId64 " of %s is %" PRId64 ", not %" PRId64,
                 difference.element, result->name, difference.actual, difference.expected);
    }
    if (actual->dropped_digits != expected->dropped_digits)
        FAIL(error, HEALCL_DIFFERENT, "digits of %" PRIu64 " values are dropped, not of %" PRIu64,
             actual->dropped_digits, expected->dropped_digits);
    return HEALCL_OK;
}

/* Data that the reference refuses must be refused with the same message. */
static enum healcl_status check(struct healcl_device *device, const struct plan *plain,
                                const struct plan *fused, struct healcl_error *error)
{
    struct results expected, actual;
    struct healcl_error refusal = {.status = HEALCL_OK};
    enum healcl_status status = results_run(&expected, NULL, plain, NULL, 0, &refusal);
    const enum healcl_status of_device = results_run(&actual, device, fused, NULL, 0, error);
    const bool refuses = of_device == HEALCL_REFUSED && actual.refuses_data;
    if (status == HEALCL_OK && of_device == HEALCL_OK) {
        status = compare(&actual, &expected, error);
    } else if (status == HEALCL_OK && !refuses) {
        status = of_device;
    } else if (!refuses || status != of_device || strcmp(refusal.message, error->message) != 0) {
        error_prefix(error, "the device's error, not '%s': ", refusal.message);
        status = error->status = HEALCL_DIFFERENT;
    } else {
        healcl_error_clear(error);
        status = HEALCL_OK;
    }
    healcl_error_clear(&refusal);
    results_release(&expected);
    results_release(&actual);
    return status;
}

enum healcl_status sequence_check(struct variants *variants, uint32_t number, bool only_new,
                                  bool *skipped, uint64_t *changes, struct healcl_error *error)
{
    struct sequence self = make(number);
    struct planned fused, plain = {.plan = NULL};
    enum healcl_status status = plan_fused(&self, !only_new, &fused, error);
    for (size_t i = 0; status == HEALCL_OK && i < fused.plan->segment_count; i++)
        for (int pass = 0; pass < PASS_COUNT; pass++)
            changes[pass] += fused.plan->segments[i].pass_changes[pass];
    *skipped = only_new && status == HEALCL_OK && !variants_are_new(variants, fused.plan);
    if (only_new && status == HEALCL_OK && !*skipped) {
        planned_release(&fused);
        status = plan_fused(&self, true, &fused, error);
    }
    if (status == HEALCL_OK && !*skipped)
        status = planned_init(&plain, xstrdup(fused.text), NULL, NULL, error);
    if (plain.plan) {
        status = check(variants->device, plain.plan, fused.plan, error);
        variants_end_call(variants, fused.plan, status == HEALCL_OK);
    }
    if (status != HEALCL_OK) {
        free(error->detail);
        error->detail =
            xasprintf("  %s, r %" PRId64 ", s %" PRId64 ", n %" PRId64 ", k %" PRId64 ", %s: %s\n",
                      dtype_name(self.dtype), self.r, self.s, self.n, self.k,
                      layout_names[self.layout], self.calls.bytes);
    }
    planned_release(&plain);
    planned_release(&fused);
    free(self.calls.bytes);
    return status;
}

enum healcl_status sequence_check_changes(const uint64_t *changes, struct healcl_error *error)
{
    for (int i = 0; i < PASS_COUNT; i++)
        if (changes[i] != expected_changes[i])
            FAIL(error, HEALCL_DIFFERENT, "pass '%s' changes %" PRIu64 " steps, not %" PRIu64,
                 passes[i].name, changes[i], expected_changes[i]);
    return HEALCL_OK;
}
