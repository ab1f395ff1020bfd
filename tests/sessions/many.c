/*
 * Many sessions on one device, one after another: many DEVICE SESSIONS TRANSCRIPT. Exit status 1
 * where a program is built or loaded after the first session, or where resident memory grows by
 * more than a megabyte after the first hundred.
 */
#include <healcl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resident.h"

enum { SETTLED = 100, GROWTH_MAX = 1024 /* KiB */ };

static struct healcl_error error;

static void need(enum healcl_status status)
{
    if (status == HEALCL_OK)
        return;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

static void count_programs(void *context, const char *line)
{
    *(int *)context += strncmp(line, "program ", 8) == 0;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: %s DEVICE SESSIONS TRANSCRIPT\n", argv[0]);
        return 2;
    }
    int programs = 0, programs_of_first = 0;
    long settled = 0;
    struct healcl_device *device = NULL;
    struct healcl_transcript *transcript = NULL;
    need(healcl_device_open_with(&(struct healcl_device_options){.selector = argv[1],
                                                                 .log = count_programs,
                                                                 .log_context = &programs},
                                 &device, &error));
    need(healcl_transcript_open(argv[3], NULL, &transcript, &error));
    int sessions = atoi(argv[2]);
    for (int i = 0; i < sessions; i++) {
        struct healcl_session *session = NULL;
        need(healcl_session_open(transcript, device, NULL, &session, &error));
        need(healcl_session_run(session, &error));
        healcl_session_close(session);
        if (i == 0)
            programs_of_first = programs;
        if (i == SETTLED)
            settled = resident_kilobytes();
    }
    long growth = resident_kilobytes() - settled;
    printf("%d programs in the first session, %d in later ones; %ld KiB more after session %d\n",
           programs_of_first, programs - programs_of_first, growth, SETTLED);
    healcl_transcript_close(transcript);
    healcl_device_close(device);
    return programs_of_first == 0 || programs > programs_of_first || settled == 0 ||
           growth > GROWTH_MAX;
}
