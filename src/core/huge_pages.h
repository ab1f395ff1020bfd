/* Huge pages for large blocks of memory: fewer page faults and TLB misses. */
#ifndef HEALCL_CORE_HUGE_PAGES_H
#define HEALCL_CORE_HUGE_PAGES_H

#include <stddef.h>

/* Requests huge pages for the part of a block that they fit into. The block should not have been
 * touched yet. This is only a hint, so failures are not reported. */
void huge_pages_ask(void *block, size_t bytes);

#endif
