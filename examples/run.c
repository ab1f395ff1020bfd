#include <healcl.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct healcl_error error = {0};
    struct healcl_transcript *transcript = NULL;
    struct healcl_device *device = NULL; /* NULL in healcl_run: the host reference */
    struct healcl_report *report = NULL;
    if (healcl_transcript_open(argc > 1 ? argv[1] : "", NULL, &transcript, &error) == HEALCL_OK &&
        healcl_device_open("pocl", &device, &error) == HEALCL_OK &&
        healcl_run(transcript, device, NULL, &report, &error) == HEALCL_OK)
        printf("%llu of %llu results are right\n",
               (unsigned long long)(report->results_compared - report->results_different),
               (unsigned long long)report->results_compared);
    else
        fprintf(stderr, "%s\n", error.message);
    int code = report && report->verdict == HEALCL_VERIFIED ? 0 : 1;
    healcl_report_free(report);
    healcl_device_close(device);
    healcl_transcript_close(transcript);
    healcl_error_clear(&error);
    return code;
}
