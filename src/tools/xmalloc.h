/* Memory for programs, which end when memory runs out: the functions below never return NULL. The
 * library must not use them. In the library, lack of memory is a status. */
#ifndef HEALCL_TOOLS_XMALLOC_H
#define HEALCL_TOOLS_XMALLOC_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Allocate memory, to be freed with free(). A size of 0 counts as 1. A product that overflows
 * counts as lack of memory. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *memory, size_t count, size_t size);
char *xstrdup(const char *text);

/* Makes allocated memory live as long as the program, and returns it. For texts of a report, which
 * are few. Only the main thread may call it. */
void *xkeep(void *memory);

/* Formats a text, and keeps it. */
__attribute__((format(printf, 1, 2))) char *xformat(const char *format, ...);

/* Opens a stream into memory, as open_memstream does. *text is whole once xclose has closed it. */
FILE *xopen_memstream(char **text, size_t *size);
void xclose(FILE *stream);

/* Ends the program when memory runs out. A program must set this handler first. It prints one line
 * for the user, and exits with code 4. */
extern void (*xmalloc_failed)(void);

/* Calls the handler, for memory that others allocate. */
_Noreturn void xmalloc_fail(void);

/* Returns `memory`, or calls the handler if it is NULL. */
void *xchecked(void *memory);

#endif
