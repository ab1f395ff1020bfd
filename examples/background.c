/* Two sessions that work in the background, on one device; a third one is cancelled. */
#include <healcl.h>
#include <stdio.h>

static void tell(void *context, enum healcl_status status)
{
    printf("session %s: %s\n", (const char *)context, healcl_status_name(status));
}

int main(int argc, char **argv)
{
    static char names[3][2] = {"A", "B", "C"};
    struct healcl_error error = {0};
    struct healcl_transcript *transcript = NULL;
    struct healcl_device *device = NULL;
    struct healcl_session *sessions[3] = {NULL};
    enum healcl_status status =
        healcl_transcript_open(argc > 1 ? argv[1] : "", NULL, &transcript, &error);
    if (status == HEALCL_OK)
        status = healcl_device_open(argc > 2 ? argv[2] : NULL, &device, &error);
    size_t segments = healcl_transcript_segment_count(transcript);
    for (int i = 0; i < 3 && status == HEALCL_OK; i++) {
        status = healcl_session_open(transcript, device, NULL, &sessions[i], &error);
        if (status == HEALCL_OK)
            status = healcl_session_start(sessions[i], 0, segments, tell, names[i], &error);
    }
    healcl_session_cancel(sessions[2]);
    for (int i = 0; i < 3 && status == HEALCL_OK; i++) {
        status = healcl_session_wait(sessions[i], &error);
        if (i == 2 && status == HEALCL_CANCELLED) /* or it had ended before */
            status = HEALCL_OK;
    }
    if (status != HEALCL_OK)
        fprintf(stderr, "%s\n", error.message);
    for (int i = 0; i < 3; i++)
        healcl_session_close(sessions[i]);
    healcl_device_close(device);
    healcl_transcript_close(transcript);
    healcl_error_clear(&error);
    return status == HEALCL_OK ? 0 : 1;
}
