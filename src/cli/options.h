/* What the values of options are, whichever command takes them. */
#ifndef HEALCL_CLI_OPTIONS_H
#define HEALCL_CLI_OPTIONS_H

#include "cli/cli.h"

enum option_value {
    VALUE_OTHER, /* a number, a word */
    VALUE_DEVICE,
    VALUE_REPORT, /* a file that is written, "-" for standard output */
    VALUE_FILE,   /* any other file */
    VALUE_FOLDER,
};

/* name: a long option's, which takes a value. */
enum option_value option_value_of(const char *name);

#endif
