/* What reports have in common: lines, and members of JSON. */
#ifndef HEALCL_REPORT_MEMBERS_H
#define HEALCL_REPORT_MEMBERS_H

#include "report/json.h"
#include "report/report.h"

/* "transcript  FILE": one fact in a line. */
__attribute__((format(printf, 3, 4))) void report_label(const struct style *style,
                                                        const char *label, const char *format, ...);

/* What has failed; is_of_driver as of report_error_json. */
void report_error_members(struct json *json, const struct healcl_error *error, bool is_of_driver);

/* Describes a device; adds its members to object. */
void report_device_members(struct json *json, cJSON *object, const struct device_info *info);

/* How its kernels are shaped and what has said so, as further members. */
void report_tuning(struct json *json, cJSON *object, const struct device_tuning *tuning);

/* What its self-test said, as further members. */
void report_self_test(struct json *json, cJSON *object, enum self_test_outcome outcome,
                      const char *failure);

/* Adds the rates of a roofline that is known, as an object. */
void report_roofline(struct json *json, cJSON *object, const struct roofline *roofline);

/* What staying below a limit of device memory takes, as a member; the object, for more of them. */
cJSON *report_memory(struct json *json, cJSON *object, const struct memory_facts *memory);

/* What tensors take where there is no limit, as a member. */
void report_tensor_memory(struct json *json, cJSON *object, const struct memory_facts *memory);

/* Which kernels serve a plan's steps on a device, as further members. */
void report_kernels_members(struct json *json, cJSON *object, const struct plan *plan,
                            const struct healcl_device *device);

/* What ranks share, and what that takes, as a member. */
void report_ranks_members(struct json *json, cJSON *object, const struct ranks_facts *facts);

/* Along which axis ranks split which upload, unless there is but one: a line, and members. */
void report_split(const struct healcl_transcript *part, const struct healcl_split *split,
                  bool is_chosen, const struct style *style);
void report_split_members(struct json *json, cJSON *object, const struct healcl_transcript *part,
                          const struct healcl_split *split, bool is_chosen);

/* What ranks exchange, as members. */
void report_exchanges(struct json *json, cJSON *object, const struct healcl_transcript *part);

/* Which inputs and results a rank has parts of, as members "inputs" and "results". */
void report_parts(struct json *json, cJSON *object, const struct healcl_transcript *part);

/* Prints " --ops DIR", or " --trust DIR", for each folder that was read, as a shell takes it.
 * manifests may be NULL.
 */
void report_folders(const struct healcl_operations *manifests, FILE *stream);

#endif
