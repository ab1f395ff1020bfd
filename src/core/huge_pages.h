/* Large pages for large blocks of memory: fewer page faults, and fewer misses of the TLB. */
#ifndef HEALCL_CORE_HUGE_PAGES_H
#define HEALCL_CORE_HUGE_PAGES_H

#include <stddef.h>

/* Asks for huge pages where they fit into a block, which should not have been touched yet. A hint:
 * where the system does not take it, nothing is lost, so nothing is reported. */
void huge_pages_ask(void *block, size_t bytes);

#endif
