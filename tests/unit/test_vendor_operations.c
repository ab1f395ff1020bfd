/* Operations of manifests by call: kernels and bodies on views of all kinds, on a device and on the
 * host reference. */
#include "helper_manifest.h"
#include "helper_queue.h"
#include "helper_script.h"
#include "plan/split.h"
#include "run/loaded_transcript.h"

static const char manifest[] =
    "{\"healcl\": 1, \"operations\": [\n"
    "{\"name\": \"packed_add\", \"parameters\": [\n"
    " {\"name\": \"a\", \"kind\": \"tensor\", \"dtype\": \"int64\"},\n"
    " {\"name\": \"f\", \"kind\": \"int\"},\n"
    " {\"name\": \"out\", \"kind\": \"out\", \"dtype\": \"int64\", \"reads\": true}],\n"
    " \"rules\": [\"rank(a) == 2 && rank(out) == 2\",\n"
    "  \"shape(a, 0) == shape(out, 0) && shape(a, 1) == shape(out, 1)\", \"f != 0\"],\n"
    " \"kernels\": [{\"source\": \"kernels.cl\", \"kernel\": \"packed_add\",\n"
    "  \"global\": \"size(a)\", \"local\": 1, \"arguments\": [\"out\", \"a\", \"f\"]}],\n"
    " \"body\": [{\"name\": \"empty\", \"args\": [[\"shape(a, 0)\", \"shape(a, 1)\"], "
    "\"int64\"], \"out\": \"t\"},\n"
    "  {\"name\": \"modmul\", \"args\": [\"a\", \"f\", 1000003, \"t\"]},\n"
    "  {\"name\": \"modsum\", \"args\": [\"out\", \"t\", 1000003, \"out\"]}]},\n"
    "{\"name\": \"strided_row\", \"parameters\": [\n"
    " {\"name\": \"a\", \"kind\": \"tensor\", \"dtype\": \"int64\", \"layout\": \"any\"},\n"
    " {\"name\": \"row\", \"kind\": \"int\"}],\n"
    " \"result\": {\"dtype\": \"int64\", \"shape\": [\"shape(a, 1)\"]},\n"
    " \"rules\": [\"rank(a) == 2 && row >= 0 && row < shape(a, 0)\"],\n"
    " \"kernels\": [{\"source\": \"kernels.cl\", \"kernel\": \"strided_row\",\n"
    "  \"global\": \"shape(a, 1)\", \"local\": 1, \"arguments\": [\"out\", \"a\", \"row\"]}]},\n"
    "{\"name\": \"brittle_double\", \"parameters\": [\n"
    " {\"name\": \"a\", \"kind\": \"tensor\", \"dtype\": \"int64\"}],\n"
    " \"result\": {\"dtype\": \"int64\", \"shape\": [\"shape(a, 0)\", \"shape(a, 1)\"]},\n"
    " \"rules\": [\"rank(a) == 2\"],\n"
    " \"kernels\": [{\"source\": \"kernels.cl\", \"kernel\": \"brittle_double\",\n"
    "  \"defines\": {\"ROWS\": \"shape(a, 0)\"},\n"
    "  \"global\": \"size(a)\", \"local\": 1, \"arguments\": [\"out\", \"a\"]}],\n"
    " \"body\": [{\"name\": \"modsum\", \"args\": [\"a\", \"a\", 1000003, \"out\"]}]},\n"
    "{\"name\": \"tell_shape\", \"parameters\": [\n"
    " {\"name\": \"out\", \"kind\": \"out\", \"dtype\": \"int64\"}],\n"
    " \"rules\": [\"rank(out) == 2\"],\n"
    " \"kernels\": [{\"source\": \"kernels.cl\", \"kernel\": \"tell_shape\", \"when\": \"EACH != "
    "5\",\n"
    "  \"tunables\": {\"EACH\": [1, 2, 3, 5], \"WIDE\": [10, 20]},\n"
    "  \"global\": \"size(out) / EACH\", \"local\": 1, \"arguments\": [\"out\"]}]}],\n"
    "\"replacements\": [{\"step\": \"mod\", \"source\": \"kernels.cl\", \"kernel\": \"row_mod\",\n"
    " \"when\": \"rank(out) == 1\", \"global\": \"size(out)\", \"local\": 1,\n"
    " \"arguments\": [\"out\", \"a\", \"p\"]}]}\n";

static const char kernels[] =
    "KERNEL packed_add(global long *out, long out_at, global const long *a, long a_at, long f)\n"
    "{ long i = get_global_id(0);\n"
    "  out[out_at + i] = (out[out_at + i] + a[a_at + i] * f % 1000003) % 1000003; }\n"
    "KERNEL strided_row(global long *out, long out_at, global const long *a, long a_at,\n"
    "                   long down, long along, long row)\n"
    "{ long i = get_global_id(0); out[out_at + i] = a[a_at + row * down + i * along]; }\n"
    "#if defined ROWS && ROWS == 3\n"
    "#error this kernel is not for three rows\n"
    "#endif\n"
    "KERNEL brittle_double(global long *out, long out_at, global const long *a, long a_at)\n"
    "{ long i = get_global_id(0); out[out_at + i] = 2 * a[a_at + i] % 1000003; }\n"
    "KERNEL row_mod(global long *out, long out_at, long step, global const long *a, long a_at,\n"
    "               long a_step, global const long *p, long p_at, long p_step)\n"
    "{ long i = get_global_id(0);\n"
    "  out[out_at + i * step] = 1000 + a[a_at + i * a_step] % p[p_at + i * p_step]; }\n"
    "#ifdef WIDE\n"
    "KERNEL tell_shape(global long *out, long out_at)\n"
    "{ for (int i = 0; i < EACH; i++)\n"
    "    out[out_at + get_global_id(0) * EACH + i] = EACH + WIDE; }\n"
    "#endif\n";

static int load(void **state)
{
    return load_manifest(state, manifest, kernels);
}

static struct healcl_queue *open_queue(struct healcl_device *where)
{
    struct healcl_queue *queue = NULL;
    const struct healcl_plan_options options = {.operations = loaded};
    OK(healcl_queue_open(where, &options, &queue, &error));
    return queue;
}

#define CALL(queue, result, name, ...)                                                            \
    healcl_call(queue, name,                                                                      \
                sizeof((struct healcl_argument[]){__VA_ARGS__}) / sizeof(struct healcl_argument), \
                (struct healcl_argument[]){__VA_ARGS__}, result, &error)

static struct healcl_tensor *new_tensor(struct healcl_queue *queue)
{
    struct healcl_tensor *tensor = NULL;
    int64_t values[36];
    for (int i = 0; i < 36; i++)
        values[i] = 1000 * i + 17;
    OK(healcl_tensor_create(queue, HEALCL_INT64, 2, (const int64_t[]){6, 6}, values, &tensor,
                            &error));
    return tensor;
}

/* View number 0 to 3 of a tensor: all of it, rows 1 to 3, columns, a transpose. */
static struct healcl_tensor *view_of(struct healcl_queue *queue, struct healcl_tensor *tensor,
                                     int view, int64_t first)
{
    struct healcl_tensor *made = NULL;
    const struct healcl_index slice = {.kind = HEALCL_INDEX_SLICE,
                                       .has_start = true,
                                       .start = first,
                                       .has_stop = true,
                                       .stop = first + 3};
    const struct healcl_index columns[] = {{.kind = HEALCL_INDEX_ELLIPSIS}, slice};
    if (view == 3)
        OK(CALL(queue, &made, "moveaxis", healcl_tensor_argument(tensor), healcl_int_argument(0),
                healcl_int_argument(1)));
    else if (view == 0)
        OK(CALL(queue, &made, "new_reference", healcl_tensor_argument(tensor)));
    else
        OK(CALL(queue, &made, "get_slice", healcl_tensor_argument(tensor),
                view == 1 ? healcl_index_argument(1, &slice) : healcl_index_argument(2, columns)));
    return made;
}

/* Runs a += of one view to another, of the same or of another tensor, and returns both tensors. */
static void add_views(struct healcl_device *where, int a_view, int out_view, bool same,
                      int64_t results[72])
{
    struct healcl_queue *queue = open_queue(where);
    struct healcl_tensor *a = new_tensor(queue), *out = same ? a : new_tensor(queue);
    struct healcl_tensor *from = view_of(queue, a, a_view, 1),
                         *to = view_of(queue, out, out_view, 2);
    OK(CALL(queue, NULL, "packed_add", healcl_tensor_argument(from), healcl_int_argument(-3),
            healcl_tensor_argument(to)));
    OK(CALL(queue, NULL, "_packed_add", healcl_tensor_argument(from), healcl_int_argument(5),
            healcl_tensor_argument(to)));
    OK(healcl_tensor_read(a, results, 36 * sizeof *results, &error));
    OK(healcl_tensor_read(out, results + 36, 36 * sizeof *results, &error));
    close_queue(queue);
}

static void views_give_the_same(void **state)
{
    (void)state;
    for (int a_view = 0; a_view < 4; a_view++)
        for (int out_view = 0; out_view < 4; out_view++)
            for (int same = 0; same < 2; same++) {
                int64_t on_device[72], on_host[72];
                if ((a_view == 0 || a_view == 3) != (out_view == 0 || out_view == 3) ||
                    (a_view == 1) != (out_view == 1)) /* of other shapes */
                    continue;
                add_views(device, a_view, out_view, same, on_device);
                add_views(NULL, a_view, out_view, same, on_host);
                assert_memory_equal(on_device, on_host, sizeof on_host);
            }
}

/* ---------------------------------------------------------------- calls that come again */

enum { TENSORS = 3, CALLS = 3000 };

static uint32_t drawn;

static int draw(int below)
{
    drawn = drawn * 1664525u + 1013904223u;
    return (int)((drawn >> 8) % (uint32_t)below);
}

/* A call of packed_add on drawn views of drawn tensors with a drawn integer, some of them refused;
 * calls are often like earlier ones, up to their tensors. */
static void add_drawn(struct healcl_queue *queue, struct healcl_tensor *const tensors[TENSORS])
{
    static const int views[][2] = {{0, 0}, {0, 3}, {3, 0}, {3, 3}, {1, 1}, {2, 2}};
    const int pair = draw(6), f = draw(4) == 0 ? draw(400) - 50 : draw(3);
    struct healcl_tensor *a = tensors[draw(TENSORS)], *out = tensors[draw(TENSORS)];
    const int a_first = draw(4), out_first = draw(4);
    struct healcl_tensor *from = view_of(queue, a, views[pair][0], a_first),
                         *to = view_of(queue, out, views[pair][1], out_first);
    assert_int_equal(CALL(queue, NULL, "packed_add", healcl_tensor_argument(from),
                          healcl_int_argument(f), healcl_tensor_argument(to)),
                     f == 0 ? HEALCL_REFUSED : HEALCL_OK);
    healcl_tensor_release(from);
    healcl_tensor_release(to);
}

static void call_in_drawn_order(struct healcl_device *where, int64_t results[TENSORS][36])
{
    struct healcl_queue *queue = open_queue(where);
    struct healcl_tensor *tensors[TENSORS];
    drawn = 20261123;
    for (int i = 0; i < TENSORS; i++)
        tensors[i] = new_tensor(queue);
    for (int i = 0; i < CALLS; i++) {
        const int which = draw(TENSORS);
        add_drawn(queue, tensors);
        if (draw(50) == 0) { /* made again, its storage's number taken by another */
            healcl_tensor_release(tensors[which]);
            tensors[which] = new_tensor(queue);
        }
        if (draw(200) == 0)
            OK(healcl_queue_wait(queue, &error));
    }
    for (int i = 0; i < TENSORS; i++)
        OK(healcl_tensor_read(tensors[i], results[i], sizeof results[i], &error));
    assert_int_equal(healcl_queue_fallbacks(queue), 0);
    close_queue(queue);
}

static void calls_come_again(void **state)
{
    (void)state;
    static int64_t on_device[TENSORS][36], on_host[TENSORS][36];
    call_in_drawn_order(device, on_device);
    call_in_drawn_order(NULL, on_host);
    assert_memory_equal(on_device, on_host, sizeof on_host);
}

static void makes_new_tensors_of_any_layout(void **state)
{
    (void)state;
    struct healcl_queue *queue = open_queue(device);
    struct healcl_tensor *a = new_tensor(queue), *turned = view_of(queue, a, 3, 0), *row = NULL;
    int64_t values[6];
    OK(CALL(queue, &row, "strided_row", healcl_tensor_argument(turned), healcl_int_argument(2)));
    assert_int_equal(healcl_tensor_describe(row).rank, 1);
    OK(healcl_tensor_read(row, values, sizeof values, &error));
    for (int i = 0; i < 6; i++)
        assert_int_equal(values[i], 1000 * (6 * i + 2) + 17);
    for (int again = 0; again < 3; again++) /* with one integer and with others */
        for (int number = 0; number < 3; number++) {
            healcl_tensor_release(row);
            OK(CALL(queue, &row, "strided_row", healcl_tensor_argument(turned),
                    healcl_int_argument(number)));
            OK(healcl_tensor_read(row, values, sizeof values, &error));
            for (int i = 0; i < 6; i++)
                assert_int_equal(values[i], 1000 * (6 * i + number) + 17);
        }
    close_queue(queue);
}

static void double_rows(struct healcl_queue *queue, struct healcl_tensor *a, size_t count)
{
    struct healcl_tensor *made = NULL;
    int64_t before[36], after[36];
    OK(healcl_tensor_read(a, before, count * sizeof *before, &error));
    OK(CALL(queue, &made, "brittle_double", healcl_tensor_argument(a)));
    OK(healcl_tensor_read(made, after, count * sizeof *after, &error));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(after[i], 2 * before[i] % 1000003);
    healcl_tensor_release(made);
}

/* A kernel that has run for one shape fails for another: from then on its body runs for all. */
static void bodies_take_over(void **state)
{
    (void)state;
    struct healcl_queue *queue = open_queue(device);
    struct healcl_tensor *a = new_tensor(queue), *rows = view_of(queue, a, 1, 1);
    for (int i = 0; i < 3; i++)
        double_rows(queue, a, 36);
    assert_int_equal(healcl_queue_fallbacks(queue), 0);
    double_rows(queue, rows, 18);
    assert_int_equal(healcl_queue_fallbacks(queue), 1);
    OK(CALL(queue, NULL, "packed_add", healcl_tensor_argument(a), healcl_int_argument(7),
            healcl_tensor_argument(a))); /* other values at the same place */
    for (int i = 0; i < 3; i++)
        double_rows(queue, a, 36);
    assert_int_equal(healcl_queue_fallbacks(queue), 4);
    close_queue(queue);
}

/* Whether each element was written by the alternative of these values. */
static void expect_shape(struct healcl_queue *queue, struct healcl_tensor *out, int64_t told)
{
    int64_t values[36];
    OK(CALL(queue, NULL, "tell_shape", healcl_tensor_argument(out)));
    OK(healcl_tensor_read(out, values, sizeof values, &error));
    for (int i = 0; i < 36; i++)
        assert_int_equal(values[i], told);
}

/* A kernel is compiled and launched with the values that were chosen for the device, and with its
 * first ones where it cannot run with those. */
static void tunables_are_as_chosen(void **state)
{
    (void)state;
    static const int64_t told[] = {11, 21, 12, 22, 13, 23, 11, 11}; /* EACH == 5 is impossible */
    const uint64_t identity = operation_named("tell_shape")->identity;
    for (uint32_t alternative = 0; alternative < sizeof told / sizeof *told; alternative++) {
        kernel_choices_set(&device->programs->choices, identity, vendor_choice(0, alternative));
        struct healcl_queue *queue = open_queue(device);
        struct healcl_tensor *out = new_tensor(queue);
        for (int again = 0; again < 3; again++)
            expect_shape(queue, out, told[alternative]);
        close_queue(queue);
    }
    device->programs->choices.text[0] = 0;
}

/* Kernels of manifests read scalars from memory, where later calls add others. */
static void kernels_read_new_scalars(void **state)
{
    (void)state;
    struct healcl_queue *queue = open_queue(device);
    struct healcl_tensor *a = NULL, *out = NULL;
    int64_t got;
    OK(healcl_tensor_create(queue, HEALCL_INT64, 1, (int64_t[]){1}, (int64_t[]){500}, &a, &error));
    for (int64_t p = 7; p < 11; p++) {
        OK(CALL(queue, &out, "mod", healcl_tensor_argument(a), healcl_int_argument(p),
                healcl_no_argument()));
        OK(healcl_tensor_read(out, &got, sizeof got, &error));
        assert_int_equal(got, 1000 + 500 % p);
        healcl_tensor_release(out);
    }
    close_queue(queue);
}

static void refusals_are_named(void **state)
{
    (void)state;
    struct healcl_queue *queue = open_queue(NULL);
    struct healcl_tensor *a = new_tensor(queue), *row = NULL;
    assert_int_equal(CALL(queue, NULL, "packed_add", healcl_tensor_argument(a),
                          healcl_int_argument(0), healcl_tensor_argument(a)),
                     HEALCL_REFUSED);
    assert_string_equal(error.message, "call 1 (packed_add): rule 'f != 0' does not hold");
    assert_int_equal(
        CALL(queue, NULL, "strided_row", healcl_tensor_argument(a), healcl_int_argument(6)),
        HEALCL_REFUSED);
    assert_int_equal(
        CALL(queue, &row, "strided_row", healcl_tensor_argument(a), healcl_int_argument(1)),
        HEALCL_REFUSED);
    assert_string_equal(error.message, "call 1 (strided_row): a vendor's operation without a body "
                                       "cannot run on the host reference");
    close_queue(queue);
}

static void describes_them(void **state)
{
    (void)state;
    struct healcl_operation_info info;
    assert_true(healcl_operation_describe(loaded, OPERATION_NTT, &info));
    assert_string_equal(info.name, "ntt");
    assert_true(healcl_operation_describe(loaded, OPERATION_COUNT, &info));
    assert_string_equal(info.name, "packed_add");
    assert_string_equal(info.family, "vendor");
    assert_string_equal(info.manifest, "m.json");
    assert_int_equal(info.dtypes, 1u << HEALCL_INT64);
    assert_int_equal(info.form_count, 1);
    assert_string_equal(info.forms[0].name, "packed_add");
    assert_int_equal(info.forms[0].parameter_count, 3);
    assert_string_equal(info.forms[0].parameters[2].name, "out");
    assert_int_equal(info.forms[0].parameters[2].kind, HEALCL_PARAMETER_OUT);
    assert_false(info.forms[0].parameters[2].optional);
    assert_true(healcl_operation_describe(loaded, OPERATION_COUNT + 3, &info));
    assert_false(healcl_operation_describe(loaded, OPERATION_COUNT + 4, &info));
    assert_false(healcl_operation_describe(NULL, OPERATION_COUNT, &info));
}

/* Queues and transcripts keep them. */
static void are_kept(void **state)
{
    (void)state;
    struct healcl_operations *own = NULL;
    struct healcl_queue *queue = NULL;
    struct healcl_transcript *transcript = NULL;
    OK(healcl_operations_load(folder, &own, &error));
    const struct healcl_plan_options options = {.operations = own};
    OK(healcl_queue_open(NULL, &options, &queue, &error));
    OK(healcl_transcript_open_memory("[]", 2, &options, &transcript, &error));
    healcl_operations_free(own);
    struct healcl_tensor *a = new_tensor(queue);
    OK(CALL(queue, NULL, "packed_add", healcl_tensor_argument(a), healcl_int_argument(3),
            healcl_tensor_argument(a)));
    close_queue(queue);
    healcl_transcript_close(transcript);
}

static void wrong_uses_are_refused(void **state)
{
    (void)state;
    struct healcl_operations *other = NULL;
    assert_int_equal(healcl_operations_load(NULL, &other, &error), HEALCL_USAGE);
    assert_string_equal(error.message, "folder is NULL");
    assert_int_equal(healcl_operations_load(folder, NULL, &error), HEALCL_USAGE);
    assert_int_equal(healcl_operations_load("/nowhere", &other, &error), HEALCL_USAGE);
    assert_int_equal(healcl_operations_load("/nowhere", &other, NULL), HEALCL_USAGE);
    assert_null(other);
    OK(healcl_operations_load(folder, &other, &error));
    struct healcl_operations *twice = other;
    assert_int_equal(healcl_operations_load(folder, &twice, &error), HEALCL_REFUSED);
    assert_ptr_equal(twice, other);
    healcl_operations_free(other);
    healcl_operations_free(NULL);
}

/* ---------------------------------------------------------------- requests together */

enum { REQUESTS = 3, EACH = 36 };

/* out = 9 + 5 * a by an operation with a body; with row, then a row of that by one without. */
static struct healcl_transcript *open_request(struct script *script, bool row)
{
    const struct healcl_plan_options options = {.operations = loaded};
    struct healcl_transcript *transcript = NULL;
    int64_t values[EACH];
    for (int i = 0; i < EACH; i++)
        values[i] = i;
    script->operations = loaded->table;
    script_upload(script, "a", DTYPE_INT64, 2, (int64_t[]){6, 6}, values);
    script_call(script, "out", "empty", "(6,6) :int64");
    script_call(script, "out", "set_const_val", "out 9");
    script_call(script, "out", "packed_add", "a 5 out");
    if (row)
        script_call(script, "out", "strided_row", "out 2");
    script_download(script, "out");
    script_finish(script);
    OK(healcl_transcript_open_memory(script->writer.bytes, script->writer.length, &options,
                                     &transcript, &error));
    return transcript;
}

/* Bodies run for all requests, kernels for one. An operation without a body is refused by name. */
static void requests_together(void **state)
{
    (void)state;
    struct script script = {0}, with_row = {0};
    struct healcl_transcript *transcript = open_request(&script, false), *wide = NULL;
    struct healcl_session *session = NULL;
    int64_t a[REQUESTS * EACH], got[REQUESTS * EACH];
    const size_t input = 0;
    OK(healcl_transcript_widen(transcript, &input, 1, REQUESTS, &wide, &error));
    OK(healcl_session_open(wide, device, NULL, &session, &error));
    for (int i = 0; i < REQUESTS * EACH; i++)
        a[i] = 7 * i;
    OK(healcl_session_bind(session, 0, a, &error));
    OK(healcl_session_run(session, &error));
    OK(healcl_session_read(session, 0, got, sizeof got, &error));
    for (int i = 0; i < REQUESTS * EACH; i++)
        assert_int_equal(got[i], 9 + 5 * 7 * i);
    healcl_session_close(session);
    healcl_transcript_close(wide);
    healcl_transcript_close(transcript);
    script_release(&script);

    transcript = open_request(&with_row, true);
    assert_int_equal(healcl_transcript_widen(transcript, &input, 1, REQUESTS, &wide, &error),
                     HEALCL_REFUSED);
    assert_int_equal(error.entry, 4);
    assert_int_equal(error.cause, HEALCL_CAUSE_OPERATION);
    assert_string_equal(error.message,
                        "entry 4 (strided_row): a manifest's operation without a body "
                        "cannot run several requests together");
    OK(healcl_transcript_widen(transcript, NULL, 0, REQUESTS, &wide, &error)); /* alone it stays */
    healcl_transcript_close(wide);
    healcl_transcript_close(transcript);
    script_release(&with_row);
}

static struct healcl_transcript *open_doubles(struct script *script)
{
    const struct healcl_plan_options options = {.operations = loaded, .passes = "none"};
    struct healcl_transcript *transcript = NULL;
    script->operations = loaded->table;
    script_lines(
        script,
        "b (2,3); a (2,3); x (4); set_const_val b 5; t = brittle_double a; u = brittle_double b;"
        "c = empty (2,3) :int64; _modsum_ttc u u 1000003 c; abs x x; get t; get c");
    script_plan(script);
    OK(healcl_transcript_open_memory(script->writer.bytes, script->writer.length, &options,
                                     &transcript, &error));
    return transcript;
}

/* Calls of one request's values have bodies alone, others kernels beside them. */
static void calls_are_widened_or_stay(void **state)
{
    static const struct {
        enum step_kind kind;
        enum step_side side;
        int64_t elements;
    } expected[] = {{STEP_UPLOAD, STEP_ALWAYS, 6},  {STEP_UPLOAD, STEP_ALWAYS, 18},
                    {STEP_UPLOAD, STEP_ALWAYS, 4},  {STEP_FILL, STEP_ALWAYS, 6},
                    {STEP_MODSUM, STEP_ALWAYS, 18}, {STEP_VENDOR, STEP_OF_KERNEL, 6},
                    {STEP_MODSUM, STEP_OF_BODY, 6}, {STEP_MODSUM, STEP_ALWAYS, 6},
                    {STEP_ABS, STEP_ALWAYS, 4}};
    struct script script = {0};
    struct healcl_transcript *transcript = open_doubles(&script), *wide = NULL;
    (void)state;
    OK(healcl_transcript_widen(transcript, (const size_t[]){1}, 1, REQUESTS, &wide, &error));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct step *step = &wide->plan->steps[i];
        assert_int_equal(step->kind, expected[i].kind);
        assert_int_equal(step->side, expected[i].side);
        assert_int_equal(!step->vendor, step->side == STEP_ALWAYS);
        assert_int_equal(step->out->storage->elements, expected[i].elements);
    }
    assert_int_equal(wide->plan->step_count, sizeof expected / sizeof *expected + 2);
    healcl_transcript_close(wide);
    healcl_transcript_close(transcript);
    script_release(&script);
}

/* A body's facts about results hold for no kernel; derived plans know none of them. */
static void derived_plans_know_no_more(void **state)
{
    const struct healcl_plan_options options = {.passes = "none"};
    const struct healcl_split split = {.input = 2, .axis = 0, .rank = 1, .ranks = 2};
    struct script script = {0};
    struct healcl_transcript *transcript = open_doubles(&script);
    struct plan *part = NULL;
    (void)state;
    OK(plan_rewrite(script.plan, true, &options, plan_split, &split, &part, &error));
    assert_int_equal(part->step_count, script.plan->step_count);
    for (size_t i = 0; i < part->step_count; i++) {
        assert_int_equal(part->steps[i].residues, script.plan->steps[i].residues);
        assert_int_equal(part->steps[i].nonnegative, script.plan->steps[i].nonnegative);
        if (part->steps[i].kind == STEP_MODSUM && part->steps[i].side == STEP_ALWAYS)
            assert_int_equal(part->steps[i].residues, 0);
    }
    plan_free(part);
    healcl_transcript_close(transcript);
    script_release(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_give_the_same),
        cmocka_unit_test(calls_come_again),
        cmocka_unit_test(makes_new_tensors_of_any_layout),
        cmocka_unit_test(tunables_are_as_chosen),
        cmocka_unit_test(kernels_read_new_scalars),
        cmocka_unit_test(refusals_are_named),
        cmocka_unit_test(wrong_uses_are_refused),
        cmocka_unit_test(describes_them),
        cmocka_unit_test(are_kept),
        cmocka_unit_test(requests_together),
        cmocka_unit_test(calls_are_widened_or_stay),
        cmocka_unit_test(derived_plans_know_no_more),
        cmocka_unit_test(bodies_take_over), /* the last one: what has failed stays so */
    };
    return cmocka_run_group_tests(tests, load, unload_manifest);
}
