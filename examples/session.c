/* A service: one transcript, many requests. Keys and weights go up once, inputs with each request.
 */
#include <healcl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs one request with these values in an input. */
static enum healcl_status answer(struct healcl_session *session, size_t results, size_t number,
                                 void *input, struct healcl_error *error)
{
    enum healcl_status status = healcl_session_bind(session, number, input, error);
    if (status == HEALCL_OK)
        status = healcl_session_run(session, error);
    for (size_t i = 0; status == HEALCL_OK && i < results; i++) {
        const void *data = NULL; /* the session's, until its next run */
        status = healcl_session_map(session, i, &data, error);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct healcl_error error = {0};
    struct healcl_transcript *transcript = NULL;
    struct healcl_device *device = NULL;
    struct healcl_session *session = NULL;
    enum healcl_status status =
        healcl_transcript_open(argc > 1 ? argv[1] : "", NULL, &transcript, &error);
    if (status == HEALCL_OK)
        status = healcl_device_open(argc > 2 ? argv[2] : NULL, &device, &error);
    if (status == HEALCL_OK)
        status = healcl_session_open(transcript, device, NULL, &session, &error);

    size_t inputs = 0, results = 0;
    const struct healcl_tensor_info *info = healcl_transcript_inputs(transcript, &inputs);
    (void)healcl_transcript_results(transcript, &results);
    /* The last input: in an encrypted model the ciphertext that a client sends. */
    size_t last = inputs > 0 ? inputs - 1 : 0;
    void *input = inputs > 0 ? calloc(1, info[last].bytes) : NULL;
    for (int request = 0; status == HEALCL_OK && input && request < 5; request++) {
        memset(input, request, info[last].bytes);
        status = answer(session, results, last, input, &error);
        struct healcl_session_facts facts = healcl_session_facts(session);
        if (status == HEALCL_OK)
            printf("request %d: %llu bytes up, %.3f ms\n", request,
                   (unsigned long long)facts.bytes_uploaded, (double)facts.nanoseconds / 1e6);
    }
    if (status != HEALCL_OK)
        fprintf(stderr, "%s\n", error.message);
    healcl_session_close(session);
    free(input);
    healcl_device_close(device);
    healcl_transcript_close(transcript);
    healcl_error_clear(&error);
    return status == HEALCL_OK ? 0 : 1;
}
