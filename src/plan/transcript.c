#include "plan/transcript.h"

#include <stdlib.h>

enum healcl_status healcl_transcript_open(const char *path, const struct healcl_limits *limits,
                                          struct healcl_transcript **result,
                                          struct healcl_error *error)
{
    struct healcl_transcript *transcript = calloc(1, sizeof *transcript);
    if (!transcript)
        NO_MEMORY(error);
    enum healcl_status status = source_open(&transcript->source, path, error);
    if (status == HEALCL_OK)
        status = plan_create(&transcript->source, NULL, limits, &transcript->plan, error);
    if (status != HEALCL_OK) {
        healcl_transcript_close(transcript);
        return status;
    }
    *result = transcript;
    return HEALCL_OK;
}

void healcl_transcript_close(struct healcl_transcript *transcript)
{
    if (!transcript)
        return;
    plan_free(transcript->plan);
    source_close(&transcript->source);
    free(transcript);
}
