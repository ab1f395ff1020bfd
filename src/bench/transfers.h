/* What transcripts' tensors take to a device and back: for `healcl devices --measure`. */
#ifndef HEALCL_BENCH_TRANSFERS_H
#define HEALCL_BENCH_TRANSFERS_H

#include "bench/measure.h"

/* Runs a transcript that uploads a large tensor and compares it, and fills in rates->uploaded_bytes
 * and rates->downloaded_bytes. Errors: HEALCL_DEVICE, HEALCL_NO_MEMORY, HEALCL_REFUSED where there
 * is no room for it. */
enum healcl_status transfers_measure(struct healcl_device *device, struct device_rates *rates,
                                     struct healcl_error *error);

#endif
