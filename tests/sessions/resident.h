/* How much memory this process has: what is resident of it. */
#ifndef HEALCL_TESTS_SESSIONS_RESIDENT_H
#define HEALCL_TESTS_SESSIONS_RESIDENT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 0 where the system does not tell. */
static inline long resident_kilobytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kilobytes = 0;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kilobytes = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return kilobytes;
}

#endif
