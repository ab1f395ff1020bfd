#include "cli/emit.h"

#include <string.h>

extern const char healcl_cli_one_source_awk[], healcl_cli_build_sh[];

bool emit_is_target(const char *target)
{
    const size_t length = strlen(target);
    return length > 0 && length <= 32 && *target != '-' &&
           strspn(target, "abcdefghijklmnopqrstuvwxyz0123456789_-") == length;
}

bool emit_is_one_source(const char *target)
{
    return strcmp(target, "fpga") == 0;
}

bool emit_one_source(FILE *stream)
{
    return fputs(healcl_cli_one_source_awk, stream) >= 0;
}

bool emit_script(const char *target, FILE *stream)
{
    return fprintf(stream, "#!/bin/sh\n# Made by healcl compile --emit.\ntarget=%s\n%s", target,
                   healcl_cli_build_sh) > 0;
}

bool emit_defines(const char *options, FILE *stream)
{
    bool good = fprintf(stream, "/* %s */\n", options) > 0;
    for (const char *at = options; good && (at = strstr(at, "-D ")) != NULL;) {
        at += 3;
        size_t length = strcspn(at, " "), name = strcspn(at, " =");
        good = fprintf(stream, "#define %.*s %.*s\n", (int)name, at,
                       (int)(length > name ? length - name - 1 : 0), at + name + 1) > 0;
        at += length;
    }
    return good;
}
