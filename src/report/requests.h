/* Requests that were sent through one session: `healcl run --requests`. */
#ifndef HEALCL_REPORT_REQUESTS_H
#define HEALCL_REPORT_REQUESTS_H

#include "report/report.h"

struct request_facts {
    const char *file;
    const struct device_info *device; /* NULL: the host reference */
    bool no_verify;
    uint32_t count;        /* behind the first one */
    uint64_t *nanoseconds; /* of each; sorted by the report; freed with free() */
    /* The first one, which is not among them, uploads what is kept and compiles kernels. */
    uint64_t first_nanoseconds, first_bytes_uploaded;
    uint64_t bytes_uploaded;      /* by each further one */
    uint64_t device_bytes;        /* allocated on the device in the end */
    uint64_t fallbacks;           /* steps of the last one that the host did for the device */
    uint64_t compared, different; /* results, of all requests */
};

MUST_CHECK enum healcl_status report_requests(struct request_facts *facts,
                                              const struct style *style);
MUST_CHECK enum healcl_status report_requests_json(struct request_facts *facts, FILE *stream);

#endif
