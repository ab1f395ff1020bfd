/* A shell script that compiles the sources of a package elsewhere. */
#ifndef HEALCL_CLI_EMIT_H
#define HEALCL_CLI_EMIT_H

#include <stdio.h>

#include "core/status.h"

/* Whether it can be the name of a target: which ones there are, build.sh and its compilers know. */
bool emit_is_target(const char *target);

/* Writes the text of build.sh, which makes N.bin of each N.cl beside it. Returns whether it could.
 */
bool emit_script(const char *target, FILE *stream);

/* Whether all programs become one source, of which the kernels that are launched are compiled to
 * one image, workload.aocx: kernel "copy" of program 1 is p001_copy there. */
bool emit_is_one_source(const char *target);

/* Writes one_source.awk, which build.sh needs for that. Returns whether it could. */
bool emit_one_source(FILE *stream);

/* Writes options such as "-D THIN=1 -w" as lines to stand before a source: "#define THIN 1".
 * What is no -D is left to the script. Returns whether it could. */
bool emit_defines(const char *options, FILE *stream);

#endif
