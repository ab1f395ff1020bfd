/* Prints the report of `healcl check`: as text, and as JUnit XML. */
#ifndef HEALCL_CLI_CHECK_PRINT_H
#define HEALCL_CLI_CHECK_PRINT_H

#include "cli/report.h"

/* What --op, JSON and JUnit call the bundled transcripts. */
#define CHECK_TRANSCRIPTS "transcripts"

void check_print(const cJSON *document, const struct style *style);

/* Prints the report of a single call. */
void check_print_call(const cJSON *document, const struct style *style);

/* command: ignored. */
void check_print_junit(void *command, const cJSON *document, FILE *stream);

#endif
