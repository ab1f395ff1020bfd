/*
 * Memory of programs, which need not go on without it: what follows returns no NULL. The library
 * itself never uses it; there, memory that runs out is a status.
 */
#ifndef HEALCL_TOOLS_XMALLOC_H
#define HEALCL_TOOLS_XMALLOC_H

#include <stddef.h>

/* To be freed by free. A size of 0 counts as 1; a product that overflows is memory that ran out. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *memory, size_t count, size_t size);
char *xstrdup(const char *text);
__attribute__((format(printf, 1, 2))) char *xasprintf(const char *format, ...);

/* Ends the program when memory has run out. A program sets what does so, before anything else: one
 * line for the user, and exit code 4. */
extern void (*xmalloc_failed)(void);

/* Calls it; for memory that others allocate. */
_Noreturn void xmalloc_fail(void);

/* Returns such memory, and calls it for NULL. */
void *xchecked(void *memory);

#endif
