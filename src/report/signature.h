/* Operations as they are written: "modmul_ttc(a, b, p, out)". */
#ifndef HEALCL_REPORT_SIGNATURE_H
#define HEALCL_REPORT_SIGNATURE_H

#include "ops/ops.h"

enum { SIGNATURE_SIZE = 256 };

const char *signature_text(const struct form *form, char text[SIGNATURE_SIZE]);

/* Whether a form before this one is written the same; only kinds of arguments differ then. */
bool signature_repeats(const struct form *form);

#endif
