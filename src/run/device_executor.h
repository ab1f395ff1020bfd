/*
 * The executor that runs a plan on an OpenCL device.
 *
 * A segment is enqueued as one batch: nothing in it waits for the device. At its end, or earlier
 * when many results are pending, the executor drains the queue: it reads the status buffer, where
 * kernels have noted errors that only data reveal, and hands out the results.
 */
#ifndef HEALCL_RUN_DEVICE_EXECUTOR_H
#define HEALCL_RUN_DEVICE_EXECUTOR_H

#include "kernels/launcher.h"
#include "run/run.h"

/* Of an executor that device_executor_create has made: what its launches share. Its storages hold
 * what the steps so far have left in them, once the device has been waited for. */
struct launcher *device_executor_launcher(struct executor *executor);

/* Whether a check of what only data reveal has failed, or a kernel's manifest is wrong. */
bool device_executor_has_refused(const struct executor *executor);

/* Has kernels of the plan compiled and put into the driver's cache, for another process that runs
 * it: each one by a launch of one work-group, on data that nobody asks for, the kernels of the last
 * step first. What fails is left out. The executor, and its device, are good for nothing else. */
void device_executor_compile_ahead(struct executor *executor);

#endif
