/* An application that links with healcl, and has a function of a name that healcl uses inside. */
#include <healcl.h>
#include <stdio.h>

int device_open(void);
int device_open(void)
{
    return 0;
}

int main(int argc, char **argv)
{
    struct healcl_transcript *transcript = NULL;
    struct healcl_device *device = NULL;
    struct healcl_report *report = NULL;
    struct healcl_error error = {0};
    int code = device_open();
    if (argc != 2 || healcl_transcript_open(argv[1], NULL, &transcript, &error) != HEALCL_OK ||
        healcl_device_open(NULL, &device, &error) != HEALCL_OK ||
        healcl_run(transcript, device, NULL, &report, &error) != HEALCL_OK ||
        report->verdict != HEALCL_VERIFIED)
        code = 1;
    puts(code ? error.message : "verified");
    healcl_report_free(report);
    healcl_device_close(device);
    healcl_transcript_close(transcript);
    healcl_error_clear(&error);
    return code;
}
