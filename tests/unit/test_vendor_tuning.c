/* Tunables of manifests' kernels: under every value results are those of the host reference, on
 * views of all kinds and with the largest moduli, and the value that was chosen for the device is
 * the one that a kernel is compiled and launched with. */
#include "helper_manifest.h"

#include "helper_script.h"
#include "tools/random.h"

/* An operation with two kernels, and a kernel for a built-in kind of step. With WRONG they are
 * wrong in one element, so that it is seen that the comparison sees it. */
static const char manifest[] =
    "{\"healcl\": 1, \"operations\": [\n"
    "{\"name\": \"multiply_add\", \"parameters\": [\n"
    " {\"name\": \"a\", \"kind\": \"tensor\", \"dtype\": \"int64\", \"layout\": \"any\"},\n"
    " {\"name\": \"b\", \"kind\": \"tensor\", \"dtype\": \"int64\", \"layout\": \"any\"},\n"
    " {\"name\": \"q\", \"kind\": \"modulus\"},\n"
    " {\"name\": \"out\", \"kind\": \"out\", \"dtype\": \"int64\", \"layout\": \"any\",\n"
    "  \"reads\": true}],\n"
    " \"rules\": [\"rank(a) == 2 && rank(b) == 2 && rank(out) == 2\",\n"
    "  \"shape(a, 0) == shape(out, 0) && shape(a, 1) == shape(out, 1)\",\n"
    "  \"shape(b, 0) == shape(out, 0) && shape(b, 1) == shape(out, 1)\"],\n"
    " \"kernels\": [\n"
    "  {\"source\": \"kernels.cl\", \"kernel\": \"tuned_elements\",\n"
    "   \"tunables\": {\"EACH\": [1, 2, 3, 4], \"LOCAL\": [1, 2], \"WRONG\": [0, 1]},\n"
    "   \"when\": \"size(out) % (EACH * LOCAL) == 0\",\n"
    "   \"defines\": {\"TWICE\": \"2 * EACH\"}, \"global\": \"size(out) / EACH\",\n"
    "   \"local\": \"LOCAL\",\n"
    "   \"arguments\": [\"out\", \"a\", \"b\", \"q\", \"shape(out, 1)\",\n"
    "    \"100 * EACH + 10 * LOCAL + WRONG\"]},\n"
    "  {\"source\": \"kernels.cl\", \"kernel\": \"tuned_rows\", \"options\": \"-D EACH=1\",\n"
    "   \"tunables\": {\"BACKWARDS\": [1, 0], \"WRONG\": [0, 1]},\n"
    "   \"global\": \"shape(out, 0)\", \"local\": 1,\n"
    "   \"arguments\": [\"out\", \"a\", \"b\", \"q\", \"shape(out, 1)\"]}],\n"
    " \"body\": [{\"name\": \"empty\", \"args\": [[\"shape(a, 0)\", \"shape(a, 1)\"], \"int64\"],\n"
    "   \"out\": \"t\"},\n"
    "  {\"name\": \"modmul\", \"args\": [\"a\", \"b\", \"q\", \"t\"]},\n"
    "  {\"name\": \"modsum\", \"args\": [\"out\", \"t\", \"q\", \"out\"]}]}],\n"
    "\"replacements\": [{\"step\": \"modmul\", \"source\": \"kernels.cl\",\n"
    "  \"kernel\": \"tuned_modmul\",\n"
    "  \"tunables\": {\"EACH\": [1, 2, 5], \"LOCAL\": [1, 4], \"WRONG\": [0, 1]},\n"
    "  \"when\": \"rank(out) == 2 && dtype(out) == 64 && size(out) % (EACH * LOCAL) == 0\",\n"
    "  \"global\": \"size(out) / EACH\", \"local\": \"LOCAL\",\n"
    "  \"arguments\": [\"out\", \"a\", \"b\", \"p\", \"shape(out, 1)\"]}]}\n";

static const char kernels[] =
    "#define TENSOR(type, x) type *x, long x##_at, long x##_down, long x##_along\n"
    "#define AT(x, i) x[x##_at + (i) / columns * x##_down + (i) % columns * x##_along]\n"
    "#ifndef BACKWARDS\n"
    "#define BACKWARDS 0\n"
    "#endif\n"
    "long tuned_product(long a, long b, struct modulus m)\n"
    "{ return (long)multiply_mod(residue_of(a, m), residue_of(b, m), m); }\n"
    "#ifdef TWICE\n" /* the other kernels' programs have no LOCAL */
    "KERNEL tuned_elements(TENSOR(global long, out), TENSOR(global const long, a),\n"
    "                      TENSOR(global const long, b), long q, long columns, long told)\n"
    "{\n"
    "  struct modulus m = make_modulus((ulong)q);\n"
    "  for (int e = 0; e < TWICE / 2; e++) {\n"
    "    long i = get_global_id(0) * EACH + e;\n"
    "    long sum = (long)add_mod(residue_of(AT(out, i), m),\n"
    "                             (ulong)tuned_product(AT(a, i), AT(b, i), m), (ulong)q);\n"
    "    bool as_told = told == 100 * EACH + 10 * (long)get_local_size(0) + WRONG &&\n"
    "                   get_local_size(0) == LOCAL;\n"
    "    AT(out, i) = as_told ? sum + (WRONG && i == columns) : -1;\n"
    "  }\n"
    "}\n"
    "#endif\n"
    "KERNEL tuned_rows(TENSOR(global long, out), TENSOR(global const long, a),\n"
    "                  TENSOR(global const long, b), long q, long columns)\n"
    "{\n"
    "  struct modulus m = make_modulus((ulong)q);\n"
    "  for (long u = 0; u < columns; u++) {\n"
    "    long i = get_global_id(0) * columns + (BACKWARDS ? columns - 1 - u : u);\n"
    "    ulong product = (ulong)tuned_product(AT(a, i), AT(b, i), m);\n"
    "    AT(out, i) = (long)add_mod(residue_of(AT(out, i), m), product, (ulong)q) +\n"
    "                 (WRONG && i == columns);\n"
    "  }\n"
    "}\n"
    "KERNEL tuned_modmul(TENSOR(global long, out), TENSOR(global const long, a),\n"
    "                    TENSOR(global const long, b), TENSOR(global const long, p), long "
    "columns)\n"
    "{\n"
    "  for (int e = 0; e < EACH; e++) {\n"
    "    long i = get_global_id(0) * EACH + e;\n"
    "    AT(out, i) = tuned_product(AT(a, i), AT(b, i), make_modulus((ulong)AT(p, i))) +\n"
    "                 (WRONG && i == columns);\n"
    "  }\n"
    "}\n";

static int load(void **state)
{
    return load_manifest(state, manifest, kernels);
}

/* ---------------------------------------------------------------- calls */

enum { ROWS = 6, COLUMNS = 8, SIZE = ROWS * COLUMNS };

/* Views of tensors x, y and z [6,8] that a, b and out are. */
static const struct views {
    struct view {
        const char *of, *slice; /* as get_slice takes it */
        const char *then, *arguments;
    } a, b, out;
} cases[] = {
    {{"x", "[:]", NULL, NULL}, {"y", "[:]", NULL, NULL}, {"z", "[:]", NULL, NULL}},
    {{"x", "[:]", "moveaxis", "0 1"},
     {"y", "[:]", "moveaxis", "0 1"},
     {"z", "[:]", "moveaxis", "0 1"}},
    {{"x", "[1:5,::2]", NULL, NULL}, {"y", "[:4,1:5]", NULL, NULL}, {"z", "[2:,1::2]", NULL, NULL}},
    {{"x", "[:,3:4]", "expand", "1 8"}, {"y", "[2:3]", "expand", "0 6"}, {"z", "[:]", NULL, NULL}},
    {{"z", "[0:5]", NULL, NULL}, {"z", "[1:6]", NULL, NULL}, {"z", "[1:6]", NULL, NULL}},
    {{"z", "[:,1:7]", "moveaxis", "0 1"}, {"z", "[:,2:]", NULL, NULL}, {"z", "[:,:6]", NULL, NULL}},
};

static const int64_t moduli[] = {INT64_MAX - 24, INT64_MAX, ((int64_t)1 << 62) - 57, 65537, 1};

enum { CASES = sizeof cases / sizeof *cases, MODULI = sizeof moduli / sizeof *moduli };

/* Values of any size, of which some are about the modulus. */
static void upload(struct script *script, const char *name, int64_t q, struct random *random)
{
    int64_t values[SIZE];
    for (int i = 0; i < SIZE; i++)
        values[i] = random_between(random, 0, INT64_MAX);
    values[COLUMNS + 2] = q - 1;
    values[2 * COLUMNS + 3] = q;
    script_upload(script, name, DTYPE_INT64, 2, (int64_t[]){ROWS, COLUMNS}, values);
}

static void make_view(struct script *script, const char *name, const struct view *view)
{
    char text[64], whole[8];
    snprintf(whole, sizeof whole, "%s0", name);
    snprintf(text, sizeof text, "%s %s", view->of, view->slice);
    script_call(script, view->then ? whole : name, "get_slice", text);
    snprintf(text, sizeof text, "%s %s", whole, view->arguments);
    if (view->then)
        script_call(script, name, view->then, text);
}

/* All cases with all moduli; results are the whole of all tensors. */
static void make_script(struct script *script, const char *operation)
{
    struct random random = {0x7a9e};
    *script = (struct script){.operations = loaded->table};
    for (int i = 0; i < CASES * MODULI; i++) {
        const struct views *views = &cases[i % CASES];
        static const char *const names[] = {"x", "y", "z"};
        const int64_t q = moduli[i / CASES];
        char text[64];
        for (int k = 0; k < 3; k++)
            upload(script, names[k], q, &random);
        make_view(script, "a", &views->a);
        make_view(script, "b", &views->b);
        make_view(script, "out", &views->out);
        snprintf(text, sizeof text, "a b %lld out", (long long)q);
        script_call(script, NULL, operation, text);
        for (int k = 0; k < 3; k++)
            script_download(script, names[k]);
    }
    script_plan(script);
}

/* ---------------------------------------------------------------- alternatives */

/* Launches that the device recorded. */
struct launches {
    int chosen, others; /* of the alternative, and of any others of manifests */
};

/* Whether a program was compiled with the values in a name, "kernel[A=1,B=2]", each once. */
static bool is_compiled_with(const char *options, const char *name)
{
    char define[64];
    const char *at = strchr(name, '[');
    while (at && *at != ']') {
        const size_t length = strcspn(++at, ",]");
        const int written = snprintf(define, sizeof define, " -D %.*s", (int)length, at);
        const char *found = strstr(options, define);
        if (!found || (found[written] != 0 && found[written] != ' '))
            return false;
        define[strcspn(define, "=") + 1] = 0; /* " -D A=" */
        if (strstr(found + 1, define))
            return false;
        at += length;
    }
    return true;
}

static struct launches count_launches(const struct trace *trace, const char *chosen, bool is_tuned)
{
    struct launches launches = {0, 0};
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (!span->manifest.name)
            continue;
        const bool is_chosen = strcmp(span->manifest.name, chosen) == 0;
        *(is_chosen ? &launches.chosen : &launches.others) += 1;
        assert_int_equal(span->manifest.is_tuned, is_chosen && is_tuned);
        if (!is_compiled_with(span->options, span->manifest.name))
            fail_msg("%s is compiled with %s", span->manifest.name, span->options);
    }
    return launches;
}

/* Runs on the device with an alternative chosen for it, without falling back. */
static struct launches run_chosen(const struct script *script, uint64_t identity, uint32_t choice,
                                  const char *chosen, struct script_results *results)
{
    struct executor *executor;
    struct trace *trace = trace_create(10000);
    assert_non_null(trace);
    kernel_choices_set(&device->programs->choices, identity, choice);
    OK(device_executor_create(device, script->plan, &executor, &error));
    OK(device_trace_begin(device, trace, &error));
    OK(script_run(script, executor, results, &error));
    executor->class->destroy(executor);
    device_trace_end(device);
    device->programs->choices.text[0] = 0;
    const struct launches launches = count_launches(trace, chosen, choice != 0);
    trace_free(trace);
    return launches;
}

/* Each alternative of a kernel does what it can of a script, and the first one of all the rest. */
static void check_alternatives(const struct script *script, const struct script_results *expected,
                               uint64_t identity, uint32_t number,
                               const struct vendor_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->alternative_count; i++) {
        struct script_results results = {0};
        const struct launches launches =
            run_chosen(script, identity, vendor_choice(number, i), kernel->names[i], &results);
        const bool is_right = strstr(kernel->names[i], "WRONG=0") != NULL;
        if (launches.chosen == 0 || launches.chosen + launches.others != CASES * MODULI)
            fail_msg("%s ran %d times, others %d", kernel->names[i], launches.chosen,
                     launches.others);
        if (script_same_results(&results, expected) != is_right)
            fail_msg("%s: %s", kernel->names[i],
                     is_right ? "other results" : "what is wrong was not seen");
        script_results_release(&results);
    }
}

/* ---------------------------------------------------------------- tests */

static void operations_are_right(void **state)
{
    (void)state;
    const struct vendor_operation *operation = operation_named("multiply_add");
    struct script script;
    struct script_results expected = {0};
    make_script(&script, "multiply_add");
    OK(script_run_on(&script, NULL, &expected, &error));
    assert_int_equal(operation->kernel_count, 2);
    assert_int_equal(operation->kernels[0]->alternative_count, 16);
    assert_int_equal(operation->kernels[1]->alternative_count, 4);
    for (uint32_t i = 0; i < operation->kernel_count; i++)
        check_alternatives(&script, &expected, operation->identity, i, operation->kernels[i]);
    script_results_release(&expected);
    script_release(&script);
}

static void replacements_are_right(void **state)
{
    (void)state;
    const struct vendor_operations *all = vendor_of_table(loaded->table);
    const struct vendor_replacement *replacement = all->replacements[STEP_MODMUL];
    struct script script;
    struct script_results expected = {0};
    make_script(&script, "modmul");
    OK(script_run_on(&script, NULL, &expected, &error));
    assert_non_null(replacement);
    assert_int_equal(replacement->kernel->alternative_count, 12);
    check_alternatives(&script, &expected, all->replacement_identities[STEP_MODMUL], 0,
                       replacement->kernel);
    script_results_release(&expected);
    script_release(&script);
}

/* An invalid choice is ignored: the first alternative runs, and nothing reports that it is
 * tuned. */
static void other_choices_are_none(void **state)
{
    (void)state;
    const struct vendor_operation *operation = operation_named("multiply_add");
    const struct vendor_operations *all = vendor_of_table(loaded->table);
    const uint32_t choices[] = {vendor_choice(0, 16), vendor_choice(1, 4), vendor_choice(2, 0)};
    for (int replaced = 0; replaced < 2; replaced++) {
        const struct vendor_kernel *kernel =
            replaced ? all->replacements[STEP_MODMUL]->kernel : operation->kernels[0];
        const uint64_t identity =
            replaced ? all->replacement_identities[STEP_MODMUL] : operation->identity;
        struct script script;
        struct script_results expected = {0};
        make_script(&script, replaced ? "modmul" : "multiply_add");
        OK(script_run_on(&script, NULL, &expected, &error));
        for (int i = 0; i < 3; i++) {
            struct script_results results = {0};
            const struct launches launches =
                run_chosen(&script, identity, choices[i], "none", &results);
            assert_int_equal(launches.chosen, 0);
            assert_int_equal(launches.others, CASES * MODULI);
            assert_true(script_same_results(&results, &expected));
            assert_non_null(strstr(kernel->names[0], "WRONG=0"));
            script_results_release(&results);
        }
        script_results_release(&expected);
        script_release(&script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_right),
        cmocka_unit_test(replacements_are_right),
        cmocka_unit_test(other_choices_are_none),
    };
    return cmocka_run_group_tests(tests, load, unload_manifest);
}
