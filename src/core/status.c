#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef HEALCL_VERSION
#error "HEALCL_VERSION comes from the build"
#endif

const char *healcl_version(void)
{
    return HEALCL_VERSION;
}

const char *healcl_status_name(enum healcl_status status)
{
    switch (status) {
    case HEALCL_OK: return "ok";
    case HEALCL_DIFFERENT: return "different";
    case HEALCL_USAGE: return "usage";
    case HEALCL_REFUSED: return "refused";
    case HEALCL_DEVICE: return "device";
    case HEALCL_NO_MEMORY: return "no memory";
    case HEALCL_CANCELLED: return "cancelled";
    }
    return "unknown";
}

const char *healcl_cause_name(enum healcl_cause cause)
{
    switch (cause) {
    case HEALCL_CAUSE_NONE: return "none";
    case HEALCL_CAUSE_ARGUMENT: return "argument";
    case HEALCL_CAUSE_SHAPE: return "shape";
    case HEALCL_CAUSE_DTYPE: return "dtype";
    case HEALCL_CAUSE_DATA: return "data";
    case HEALCL_CAUSE_OPERATION: return "operation";
    case HEALCL_CAUSE_LIMIT: return "limit";
    case HEALCL_CAUSE_FORMAT: return "format";
    case HEALCL_CAUSE_FILE: return "file";
    case HEALCL_CAUSE_STATE: return "state";
    case HEALCL_CAUSE_DEVICE: return "device";
    case HEALCL_CAUSE_MEMORY: return "memory";
    }
    return "unknown";
}

static enum healcl_cause cause_of(enum healcl_status status, enum healcl_cause refused)
{
    switch (status) {
    case HEALCL_REFUSED: return refused;
    case HEALCL_USAGE: return HEALCL_CAUSE_ARGUMENT;
    case HEALCL_DEVICE: return HEALCL_CAUSE_DEVICE;
    case HEALCL_NO_MEMORY: return HEALCL_CAUSE_MEMORY;
    case HEALCL_OK:
    case HEALCL_DIFFERENT:
    case HEALCL_CANCELLED: break;
    }
    return HEALCL_CAUSE_NONE;
}

void healcl_error_clear(struct healcl_error *error)
{
    if (!error)
        return;
    free(error->detail);
    memset(error, 0, sizeof *error);
}

/* A name from a hostile file may hold line breaks or escape codes: an error stays one line. */
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
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    make_one_line(error->message);
    return status;
}

void error_prefix(struct healcl_error *error, const char *format, ...)
{
    if (!error)
        return;
    char prefix[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    make_one_line(prefix);
    size_t length = strlen(prefix);
    size_t room = sizeof error->message - 1 - length;
    size_t kept = strnlen(error->message, room);
    memmove(error->message + length, error->message, kept);
    memcpy(error->message, prefix, length);
    error->message[length + kept] = 0;
}
