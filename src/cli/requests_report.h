/* Requests that were sent through one session: `healcl run --requests`. */
#ifndef HEALCL_CLI_REQUESTS_REPORT_H
#define HEALCL_CLI_REQUESTS_REPORT_H

#include "cli/report.h"

/* `--audit`; share 0: there is none. */
struct request_audit {
    double share;
    uint64_t seed;
    struct healcl_audit_facts facts; /* of the session */
    struct healcl_error error;       /* what the request ended with */
};

struct request_facts {
    const char *file;
    const struct device_info *device; /* NULL: the host reference */
    bool no_verify;
    struct healcl_session *session; /* of an audit, or NULL */
    uint32_t count;                 /* behind the first one */
    uint32_t done;                  /* of those: fewer where an audit has ended one */
    struct request_audit audit;
    uint64_t *nanoseconds;      /* of each; sorted by the report; freed with free() */
    uint64_t spent_nanoseconds; /* by all of them */
    /* The first one, which is not among them, uploads what is kept and compiles kernels. */
    uint64_t first_nanoseconds, first_bytes_uploaded;
    uint64_t bytes_uploaded;      /* by each further one */
    uint64_t device_bytes;        /* allocated on the device in the end */
    uint64_t fallbacks;           /* steps of the last one that the host did for the device */
    uint64_t compared, different; /* results, of all requests */
};

struct latencies {
    uint64_t median, p95, p99, most;
};

/* Sorts the nanoseconds of count requests; all 0 where there are none. */
struct latencies latencies_of(uint64_t *nanoseconds, size_t count);

/* Adds them to object by a name. */
void latencies_json(cJSON *object, const char *name, const struct latencies *latencies);

/* Requests behind a run (`--steady`), from the first one on that counts, in their order. */
void report_add_steady(cJSON *document, const struct request_facts *facts);

cJSON *report_requests(const struct request_facts *facts);
void report_requests_text(const cJSON *document, const struct style *style);

#endif
