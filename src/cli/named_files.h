/* The files and folders that a command line names. What is written must not be what is read, nor
 * be written twice: it would replace that. */
#ifndef HEALCL_CLI_NAMED_FILES_H
#define HEALCL_CLI_NAMED_FILES_H

#include <sys/stat.h>

#include "cli/cli.h"

struct named_file {
    const struct command_option *option; /* NULL: an operand; standard output without a path */
    const char *path;
    bool is_written;
    /* Set by named_files_check. */
    mode_t type; /* as S_IFMT has it; 0: it is not there, or has no name */
    struct place {
        dev_t device;
        ino_t inode;      /* 0: there is none */
    } own, folder, above; /* the folder that it lies in, and the one above */
    char *resolved;       /* its path, links followed where it is there */
    const char *name;     /* the last part of that */
};

/* Takes what text names where an option of this kind, or NULL for an operand, names files. Returns
 * whether it does. */
bool named_file_take(const struct command_option *option, const char *text,
                     struct named_file *file);

/* Returns GOES_ON or a usage error, before anything is opened. Only regular files and folders
 * count: a pipe may be named twice. */
int named_files_check(const struct command *command, struct named_file *files, size_t count);

#endif
