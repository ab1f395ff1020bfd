/*
 * With CHECK_RANGES kernels write where a value is beyond the range that their comments tell
 * (cl/base/base.h). They write nothing as they are, and something with each of these changes, which
 * leave a lazy residue too large.
 */
#include "helper_device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check/problem_check.h"

static struct change {
    const char *from, *to; /* to is not longer */
    enum kernel_shape shape;
    enum operation_id operation;
} changes[] = {
    {"return subtract_words(x, m.BOUND);", "return x;", SHAPE_VECTORS, OPERATION_INTT},
    {"return x >= bound ? x - bound : x;", "return x;", SHAPE_LOCAL, OPERATION_NTT},
    {"return sum >= q ? sum - q : sum;", "return sum;", SHAPE_GENERAL, OPERATION_NTT},
};

static const struct change *made; /* to programs that are built now; NULL: none */
static int changed;               /* programs */
static char written[1 << 16];     /* on standard output */
static FILE *output;              /* that stands for it */
static int kept_output;
static struct opencl loader;

static cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char **texts,
                                             const size_t *lengths, cl_int *code)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream || lengths)
        abort();
    fputs("#define CHECK_RANGES\n", stream);
    for (cl_uint i = 0; i < count; i++)
        fputs(texts[i], stream);
    if (fclose(stream) != 0)
        abort();
    char *place = made ? strstr(text, made->from) : NULL;
    if (place) {
        memset(place, ' ', strlen(made->from));
        memcpy(place, made->to, strlen(made->to));
        changed++;
    }
    cl_program id = clCreateProgramWithSource(context, 1, (const char *[]){text}, NULL, code);
    free(text);
    return id;
}

static void begin_output(void)
{
    fflush(stdout);
    kept_output = dup(STDOUT_FILENO);
    output = tmpfile();
    if (kept_output < 0 || !output || dup2(fileno(output), STDOUT_FILENO) < 0)
        abort();
}

static void end_output(void)
{
    fflush(stdout);
    if (dup2(kept_output, STDOUT_FILENO) < 0)
        abort();
    close(kept_output);
    rewind(output);
    written[fread(written, 1, sizeof written - 1, output)] = 0;
    fclose(output);
}

/* Transforms rows modulo a large number. */
static enum check_result transform(const struct change *change, bool is_made)
{
    const struct problem_dtypes dtypes = {DTYPE_INT64, DTYPE_INT64, DTYPE_INT64};
    const struct form *form = forms;
    struct random random = {0x4a46e5};
    struct healcl_device *device;
    struct problem problem;
    struct problem_data data;
    struct placement placement;
    while (form_id(form) != change->operation || form_parameter(form, "axis") < 0)
        form++;
    made = NULL; /* opening a device builds programs, too */
    loader = *helper_loader();
    loader.clCreateProgramWithSource = create_program;
    OK(device_open(&loader, NULL, &device, &error));
    device->tuning.shapes[FAMILY_transform] = change->shape;
    device->tuning.transform_local_size = change->shape == SHAPE_LOCAL ? 32 : 1;
    problem_make(&problem, form, &dtypes, 512, 1, 0, &random);
    problem_data_init(&data, &problem, &random);
    dtype_store(DTYPE_INT64, data.packed[form_parameter(form, "q")], 0, 4611686018427387847);
    placement_make(&placement, &problem, ARRANGEMENT_CONTIGUOUS, 0, &random);
    made = is_made ? change : NULL;
    begin_output();
    enum check_result result = problem_check(device, &problem, &placement, &data, &random, &error);
    healcl_device_close(device);
    end_output();
    healcl_error_clear(&error);
    problem_data_release(&data);
    return result;
}

static void check_change(void **state)
{
    const struct change *change = *state;
    changed = 0;
    assert_int_equal(transform(change, false), CHECK_EQUAL);
    assert_null(strstr(written, "is not below"));
    (void)transform(change, true);
    assert_true(changed > 0);
    assert_non_null(strstr(written, "is not below"));
}

int main(void)
{
    setenv("HEALCL_CACHE_DIR", "", 1);
    const struct CMUnitTest tests[] = {
        {"rows of vectors", check_change, NULL, NULL, &changes[0]},
        {"local memory", check_change, NULL, NULL, &changes[1]},
        {"stages", check_change, NULL, NULL, &changes[2]},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
