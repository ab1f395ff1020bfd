#include "core/huge_pages.h"

#include <stdint.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 1 << 21 }; /* of x86-64, and of Arm with pages of 4 KiB */

void huge_pages_ask(void *block, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    size_t skipped = -(uintptr_t)block % HUGE_PAGE;
    if (skipped < bytes)
        (void)madvise((char *)block + skipped, (bytes - skipped) / HUGE_PAGE * HUGE_PAGE,
                      MADV_HUGEPAGE);
#else
    (void)block;
    (void)bytes;
#endif
}
