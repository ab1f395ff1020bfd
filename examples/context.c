/* Lists the devices, then runs a transcript in a context and a command queue of one's own. */
#include <CL/cl.h>
#include <healcl.h>
#include <stdio.h>

static void print_line(void *context, const char *line)
{
    fprintf((FILE *)context, "healcl: %s\n", line);
}

int main(int argc, char **argv)
{
    struct healcl_error error = {0};
    struct healcl_device_info *list = NULL;
    size_t count = 0;
    if (healcl_device_list(&list, &count, &error) != HEALCL_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < count; i++)
        printf("%s  %s%s%s\n", list[i].selector, list[i].name, *list[i].unusable ? ": " : "",
               list[i].unusable);
    healcl_device_list_free(list);

    cl_platform_id platform;
    cl_device_id id = NULL;
    cl_int code = clGetPlatformIDs(1, &platform, NULL);
    if (code == CL_SUCCESS)
        code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL);
    cl_context context =
        code == CL_SUCCESS ? clCreateContext(NULL, 1, &id, NULL, NULL, &code) : NULL;
    cl_command_queue queue = context ? clCreateCommandQueue(context, id, 0, &code) : NULL;
    struct healcl_device_options options = {
        .context = context, .device = id, .queue = queue, .log = print_line, .log_context = stdout};
    struct healcl_device *device = NULL;
    struct healcl_transcript *transcript = NULL;
    struct healcl_report *report = NULL;
    if (queue && healcl_device_open_with(&options, &device, &error) == HEALCL_OK &&
        healcl_transcript_open(argc > 1 ? argv[1] : "", NULL, &transcript, &error) == HEALCL_OK &&
        healcl_run(transcript, device, NULL, &report, &error) == HEALCL_OK)
        printf("%llu results compared\n", (unsigned long long)report->results_compared);
    else
        fprintf(stderr, "%s\n", queue ? error.message : "there is no context");
    int end = report && report->verdict == HEALCL_VERIFIED ? 0 : 1;
    healcl_report_free(report);
    healcl_transcript_close(transcript);
    healcl_device_close(device);
    if (queue)
        clReleaseCommandQueue(queue);
    if (context)
        clReleaseContext(context);
    healcl_error_clear(&error);
    return end;
}
