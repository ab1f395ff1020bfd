/* Parameters of manifests' kernels, as drivers report them in different ways. */
#include "helper_manifest.h"

static const char manifest[] =
    "{\"healcl\": 1, \"operations\": [\n"
    "{\"name\": \"scale\", \"parameters\": [\n"
    " {\"name\": \"a\", \"kind\": \"tensor\", \"dtype\": \"int64\"},\n"
    " {\"name\": \"f\", \"kind\": \"int\"},\n"
    " {\"name\": \"out\", \"kind\": \"out\", \"dtype\": \"int64\"}],\n"
    " \"kernels\": [{\"source\": \"kernels.cl\", \"kernel\": \"scale\",\n"
    "  \"global\": \"size(a)\", \"local\": 1, \"arguments\": [\"out\", \"a\", \"f\"]}]}]}\n";

static const char kernels[] =
    "KERNEL scale(global long *out, long out_at, global const long *a, long a_at, long f)\n"
    "{ long i = get_global_id(0); out[out_at + i] = a[a_at + i] * f; }\n";

static int load(void **state)
{
    return load_manifest(state, manifest, kernels);
}

/* ---------------------------------------------------------------- a driver's answers */

static struct {
    cl_uint
        index; /* of the argument whose answers are these; of the others they are the driver's */
    cl_kernel_arg_address_qualifier address; /* 0: the driver's */
    const char *type;                        /* NULL: the driver's */
    cl_int code;                             /* of all questions for it */
    cl_uint count;                           /* of arguments; 0: the driver's */
    cl_int count_code;
    unsigned asked;
} answers;

static cl_int CL_API_CALL answer(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what,
                                 size_t size, void *value, size_t *needed)
{
    answers.asked++;
    if (index != answers.index)
        return opencl_loader.clGetKernelArgInfo(kernel, index, what, size, value, needed);
    if (answers.code != CL_SUCCESS)
        return answers.code;
    if (what == CL_KERNEL_ARG_ADDRESS_QUALIFIER && answers.address) {
        memcpy(value, &answers.address, sizeof answers.address);
        return CL_SUCCESS;
    }
    if (what == CL_KERNEL_ARG_TYPE_NAME && answers.type) {
        snprintf(value, size, "%s", answers.type);
        return CL_SUCCESS;
    }
    return opencl_loader.clGetKernelArgInfo(kernel, index, what, size, value, needed);
}

static cl_int CL_API_CALL answer_count(cl_kernel kernel, cl_kernel_info what, size_t size,
                                       void *value, size_t *needed)
{
    if (answers.count_code != CL_SUCCESS)
        return answers.count_code;
    if (what == CL_KERNEL_NUM_ARGS && answers.count > 0) {
        memcpy(value, &answers.count, sizeof answers.count);
        return CL_SUCCESS;
    }
    return opencl_loader.clGetKernelInfo(kernel, what, size, value, needed);
}

enum { CALLS = 5 };

static void count_warning(void *context, const char *line)
{
    *(unsigned *)context += strstr(line, "does not report the arguments of kernels") != NULL;
}

/* Some calls of the operation on a device whose driver answers so. Returns the last one's status.
 */
static enum healcl_status scale(unsigned *warnings)
{
    struct opencl cl = *helper_loader();
    struct healcl_device *asked = NULL;
    struct healcl_queue *queue = NULL;
    struct healcl_tensor *a = NULL, *out = NULL;
    const struct healcl_plan_options plan = {.operations = loaded};
    const int64_t values[] = {1, 2, 3}, shape[] = {3};
    enum healcl_status status = HEALCL_OK;
    int64_t results[3] = {0};
    cl.clGetKernelArgInfo = answer;
    cl.clGetKernelInfo = answer_count;
    answers.asked = *warnings = 0;
    healcl_error_clear(&error);
    OK(device_open(&cl, NULL, &asked, &error));
    asked->options.log = count_warning;
    asked->options.log_context = warnings;
    OK(healcl_queue_open(asked, &plan, &queue, &error));
    OK(healcl_tensor_create(queue, HEALCL_INT64, 1, shape, values, &a, &error));
    OK(healcl_tensor_create(queue, HEALCL_INT64, 1, shape, values, &out, &error));
    const struct healcl_argument arguments[] = {healcl_tensor_argument(a), healcl_int_argument(7),
                                                healcl_tensor_argument(out)};
    for (int i = 0; i < CALLS && status == HEALCL_OK; i++)
        status = healcl_call(queue, "scale", 3, arguments, NULL, &error);
    if (status == HEALCL_OK) {
        OK(healcl_tensor_read(out, results, sizeof results, &error));
        for (int i = 0; i < 3; i++)
            assert_int_equal(results[i], 7 * values[i]);
    }
    healcl_tensor_release(a);
    healcl_tensor_release(out);
    healcl_queue_close(queue);
    healcl_device_close(asked);
    return status;
}

static void takes(void)
{
    unsigned warnings;
    const enum healcl_status status = scale(&warnings);
    if (status != HEALCL_OK)
        fail_msg("%s", error.message);
    assert_int_equal(warnings, 0);
}

static void refuses(const char *part)
{
    unsigned warnings;
    assert_int_equal(scale(&warnings), HEALCL_REFUSED);
    if (!strstr(error.message, part))
        fail_msg("\"%s\" was expected, not \"%s\"", part, error.message);
}

static void does_not_know(void)
{
    unsigned warnings;
    OK(scale(&warnings));
    assert_int_equal(warnings, 1);
}

/* ---------------------------------------------------------------- tests */

/* As many questions as one kernel object takes, however often it runs. */
static void a_kernel_is_asked_once(void **state)
{
    (void)state;
    enum { QUESTIONS = 2, ARGUMENTS = 5 };
    memset(&answers, 0, sizeof answers);
    answers.index = UINT32_MAX;
    takes();
    assert_int_equal(answers.asked, QUESTIONS * ARGUMENTS);
}

static void types_of_integers(void **state)
{
    (void)state;
    static const char *const right[] = {"long",     "ulong",    "unsigned long", "unsignedlong",
                                        "long int", "my_long",  "const long",    "signed long",
                                        "",         "a, b\n\1", "struct eight",  "int2"};
    static const char *const wrong[] = {"int",   "uint",  "unsigned int", "unsignedint",
                                        "uchar", "short", "float",        "const int",
                                        "long*", "half",  "double",       "sampler_t"};
    memset(&answers, 0, sizeof answers);
    answers.index = 4;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        answers.type = right[i];
        takes();
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char part[128];
        answers.type = wrong[i];
        snprintf(part, sizeof part,
                 "m.json: kernel 'scale' takes '%s f' as argument 5, but the manifest gives a "
                 "long, 'f'",
                 wrong[i]);
        refuses(part);
    }
    answers.type = "longer_than_anybody_would_have_a_type_be_called_but_who_knows_that_it_is_so";
    takes();
}

static void addresses(void **state)
{
    (void)state;
    memset(&answers, 0, sizeof answers);
    answers.index = 2;
    answers.address = CL_KERNEL_ARG_ADDRESS_CONSTANT;
    takes();
    answers.address = CL_KERNEL_ARG_ADDRESS_LOCAL;
    refuses("takes 'local long* a' as argument 3, but the manifest gives the memory of 'a'");
    answers.address = CL_KERNEL_ARG_ADDRESS_PRIVATE;
    answers.type = "long";
    refuses("takes 'long a' as argument 3, but the manifest gives the memory of 'a'");
    answers.address = CL_KERNEL_ARG_ADDRESS_GLOBAL;
    answers.type = "image2d_t";
    refuses("takes 'global image2d_t a' as argument 3");
    answers.type = "long"; /* without its asterisk */
    takes();
    answers.index = 3;
    answers.type = "long*";
    refuses("takes 'global long* a_at' as argument 4, but the manifest gives a long, 'a'");
}

static void drivers_that_report_nothing(void **state)
{
    (void)state;
    memset(&answers, 0, sizeof answers);
    answers.index = 1;
    answers.code = CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
    does_not_know();
    answers.code = CL_INVALID_VALUE;
    does_not_know();
    answers.code = CL_SUCCESS;
    answers.address = 7;
    does_not_know();
}

static void numbers_of_arguments(void **state)
{
    (void)state;
    memset(&answers, 0, sizeof answers);
    answers.index = UINT32_MAX;
    answers.count = 4;
    refuses("m.json: kernel 'scale' takes 4 arguments, but the manifest gives 5");
    answers.count = 600;
    refuses("m.json: kernel 'scale' takes 600 arguments, but the manifest gives 5");
    answers.count = 0;
    answers.count_code = CL_OUT_OF_HOST_MEMORY;
    does_not_know();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_is_asked_once),
        cmocka_unit_test(types_of_integers),
        cmocka_unit_test(addresses),
        cmocka_unit_test(drivers_that_report_nothing),
        cmocka_unit_test(numbers_of_arguments),
    };
    return cmocka_run_group_tests(tests, load, unload_manifest);
}
