#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "report/text.h"
#include "run/run.h"

enum {
    PATIENCE = 300000000, /* nanoseconds before the line appears */
    INTERVAL = 100000000, /* between two of them */
    LINE_SIZE = 512,
};

void progress_init(struct progress *progress, bool wanted)
{
    *progress = (struct progress){.enabled = wanted && is_smart_terminal(stderr),
                                  .width = style_of(stderr).width,
                                  .start = monotonic_nanoseconds()};
}

void progress_show(struct progress *progress, bool force, const char *format, ...)
{
    if (!progress->enabled)
        return;
    uint64_t now = monotonic_nanoseconds();
    if (!force && (now - progress->start < PATIENCE || now - progress->last < INTERVAL))
        return;
    progress->last = now;
    progress->shown = true;
    char line[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_clean(line, false);
    /* A line that reached the last column would wrap and could not be taken back. */
    size_t kept = strlen(line);
    while (kept > 0 && (text_columns(line) >= progress->width))
        line[--kept] = 0;
    fprintf(stderr, "\r%s\x1b[K", line);
    fflush(stderr);
}

void progress_clear(struct progress *progress)
{
    if (!progress->shown)
        return;
    progress->shown = false;
    fprintf(stderr, "\r\x1b[K");
    fflush(stderr);
}
