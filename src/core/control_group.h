/* Control groups (cgroups) of Linux, versions 1 and 2. */
#ifndef HEALCL_CORE_CONTROL_GROUP_H
#define HEALCL_CORE_CONTROL_GROUP_H

#include <stdint.h>

/* The bytes of memory that this process's control group and its visible ancestors allow; UINT64_MAX
 * if none has a limit. root: a prefix of /proc and /sys, "" except in tests. */
uint64_t control_group_memory(const char *root);

#endif
