#ifndef HEALCL_CORE_CLOCK_H
#define HEALCL_CORE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a monotonic clock. */
uint64_t monotonic_nanoseconds(void);

#endif
