#include "tools/xmalloc.h"

#include <stdarg.h>
#include <stdint.h>

void (*xmalloc_failed)(void) = abort;

_Noreturn void xmalloc_fail(void)
{
    xmalloc_failed();
    abort();
}

void *xchecked(void *memory)
{
    if (!memory)
        xmalloc_fail();
    return memory;
}

void *xmalloc(size_t size)
{
    return xchecked(malloc(size > 0 ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
    return xchecked(calloc(count > 0 ? count : 1, size > 0 ? size : 1));
}

void *xrealloc(void *memory, size_t count, size_t size)
{
    if (size > 0 && count > SIZE_MAX / size)
        xmalloc_fail();
    return xchecked(realloc(memory, count * size > 0 ? count * size : 1));
}

char *xstrdup(const char *text)
{
    return xchecked(strdup(text));
}

void *xkeep(void *memory)
{
    static void **kept; /* so that leak checkers find it */
    static size_t count;
    kept = xrealloc(kept, count + 1, sizeof *kept);
    return kept[count++] = memory;
}

char *xformat(const char *format, ...)
{
    char *text;
    size_t size;
    va_list arguments;
    FILE *stream = xopen_memstream(&text, &size);
    va_start(arguments, format);
    vfprintf(stream, format, arguments);
    va_end(arguments);
    xclose(stream);
    return xkeep(text);
}

FILE *xopen_memstream(char **text, size_t *size)
{
    return xchecked(open_memstream(text, size));
}

void xclose(FILE *stream)
{
    if (fclose(stream) != 0)
        xmalloc_fail();
}
