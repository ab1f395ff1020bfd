/*
 * The program healcl-mpi with a device that is lost: unit/helper_opencl.c stands in the place of
 * the loader's functions. The linker's --wrap puts it there. From call number LOST_AT of the
 * environment on, counted from 1, each call of OpenCL's fails with CL_OUT_OF_RESOURCES. Where
 * LOST_COUNT names a file, the process writes there in the end how many calls there were.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/helper_opencl.h"

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("LOST_AT");
    (void)setenv("HEALCL_ONE_PROCESS", "1", 1); /* its calls are counted here */
    helper_reset();
    helper.fail_at = at ? strtoull(at, NULL, 10) : 0;
    helper.fail_after = true;
    helper.skips_polls = true;
    helper.fail_code = CL_OUT_OF_RESOURCES;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("LOST_COUNT");
    FILE *file = path ? fopen(path, "we") : NULL;
    if (!file)
        return;
    fprintf(file, "%" PRIu64 "\n", helper.calls);
    fclose(file);
}
