/* healcl: the command line. */
#include "cli/cli.h"

static const struct command *const commands[] = {
    &command_run,   &command_compare,  &command_inspect, &command_devices,
    &command_check, &command_diagnose, &command_ops,     &command_bench,
    &command_tune,  &command_compile,  &command_pack};

static const struct program program = {
    .name = "healcl",
    .ended_by = "a driver",
    .summary = "Runs HEAL transcripts on OpenCL devices and verifies every result.\n",
    .exit_codes =
        "Exit codes: 0 all verified, 1 a result differs, 2 wrong usage, 3 the transcript\n"
        "is refused, 4 the device or OpenCL failed, 5 slower than --fail-slower allows.\n",
    .commands = commands,
    .command_count = sizeof commands / sizeof *commands,
};

int main(int argc, char **argv)
{
    return program_run(&program, argc, argv);
}
