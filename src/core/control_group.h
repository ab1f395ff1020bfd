/* Control groups of Linux, versions 1 and 2. */
#ifndef HEALCL_CORE_CONTROL_GROUP_H
#define HEALCL_CORE_CONTROL_GROUP_H

#include <stdint.h>

/* The bytes of memory that this process's group and those around it allow, as far as they can be
 * seen; UINT64_MAX where none has a limit. root: stands before /proc and /sys, "" but in tests. */
uint64_t control_group_memory(const char *root);

#endif
