#include "core/status.h"

#include <stdlib.h>
#include <string.h>

#include "core/format.h"

#ifndef HEALCL_VERSION
#error "HEALCL_VERSION comes from the build"
#endif

const char *healcl_version(void)
{
    return HEALCL_VERSION;
}

const char *healcl_status_name(enum healcl_status status)
{
    static const char *const names[] = {[HEALCL_OK] = "ok",
                                        [HEALCL_DIFFERENT] = "different",
                                        [HEALCL_USAGE] = "usage",
                                        [HEALCL_REFUSED] = "refused",
                                        [HEALCL_DEVICE] = "device",
                                        [HEALCL_NO_MEMORY] = "no memory",
                                        [HEALCL_CANCELLED] = "cancelled"};
    return (size_t)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

const char *healcl_cause_name(enum healcl_cause cause)
{
    static const char *const names[] = {[HEALCL_CAUSE_NONE] = "none",
                                        [HEALCL_CAUSE_ARGUMENT] = "argument",
                                        [HEALCL_CAUSE_SHAPE] = "shape",
                                        [HEALCL_CAUSE_DTYPE] = "dtype",
                                        [HEALCL_CAUSE_DATA] = "data",
                                        [HEALCL_CAUSE_OPERATION] = "operation",
                                        [HEALCL_CAUSE_LIMIT] = "limit",
                                        [HEALCL_CAUSE_FORMAT] = "format",
                                        [HEALCL_CAUSE_FILE] = "file",
                                        [HEALCL_CAUSE_STATE] = "state",
                                        [HEALCL_CAUSE_DEVICE] = "device",
                                        [HEALCL_CAUSE_MEMORY] = "memory",
                                        [HEALCL_CAUSE_UNSUPPORTED] = "unsupported"};
    return (size_t)cause < sizeof names / sizeof *names ? names[cause] : "unknown";
}

static enum healcl_cause cause_of(enum healcl_status status, enum healcl_cause refused)
{
    switch (status) {
    case HEALCL_REFUSED: return refused;
    case HEALCL_USAGE: return HEALCL_CAUSE_ARGUMENT;
    case HEALCL_DEVICE: return HEALCL_CAUSE_DEVICE;
    case HEALCL_NO_MEMORY: return HEALCL_CAUSE_MEMORY;
    default: return HEALCL_CAUSE_NONE;
    }
}

void healcl_error_clear(struct healcl_error *error)
{
    if (!error)
        return;
    free(error->detail);
    memset(error, 0, sizeof *error);
}

/* A name from a hostile file may contain line breaks or escape codes. An error must stay one
 * line. */
static void make_one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

enum healcl_status error_set(struct healcl_error *error, enum healcl_status status,
                             enum healcl_cause cause, const char *file, int line,
                             const char *format, ...)
{
    if (!error)
        return status;
    healcl_error_clear(error);
    error->status = status;
    error->cause = cause_of(status, cause);
    error->entry = error->operation = error->argument = -1;
    error->file = file;
    error->line = line;
    FORMAT_INTO(error->message, sizeof error->message, format);
    make_one_line(error->message);
    return status;
}

void error_prefix(struct healcl_error *error, const char *format, ...)
{
    if (!error)
        return;
    char prefix[256];
    FORMAT_INTO(prefix, sizeof prefix, format);
    make_one_line(prefix);
    size_t length = strlen(prefix);
    size_t room = sizeof error->message - 1 - length;
    size_t kept = strnlen(error->message, room);
    memmove(error->message + length, error->message, kept);
    memcpy(error->message, prefix, length);
    error->message[length + kept] = 0;
}

void error_move(struct healcl_error *error, struct healcl_error *own)
{
    healcl_error_clear(error);
    if (error)
        *error = *own;
    else
        healcl_error_clear(own);
    *own = (struct healcl_error){.status = HEALCL_OK};
}
