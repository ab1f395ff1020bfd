/* The tables of docs/PORTING.md: what the environment changes, and tunables with their defaults. */
#include <string.h>

#include "kernels/variant.h"
#include "report/report.h"

/* "%s" stands for the families of kernels. */
static const struct {
    const char *name, *meaning, *otherwise;
} variables[] = {
    {"HEALCL_DEVICE",
     "`0:1`, part of a name, `cpu`, `gpu`, `acc`; `reference` for what can run there",
     "the best there is"},
    {"HEALCL_OPENCL_LIBRARY",
     "the library that has OpenCL; functions that the process has already go before it",
     "`libOpenCL.so.1`"},
    {"HEALCL_AS",
     "`cpu`, `gpu`, `accelerator`: shaped as for that kind; what `tune` kept is left aside",
     "the device's kind"},
    {"HEALCL_TUNING", "tunables and shapes: `local_size=64,transform=local`", "below"},
    {"HEALCL_VARIANT", "the same, read after it; `general` for all families",
     "`vectors` on CPUs, `single` on accelerators, else `local`"},
    {"HEALCL_LACKS", "for tests: operations, families (%s) or `all` that the device lacks", ""},
    {"HEALCL_PLACE_BYTES", "tensors from so many bytes have [places](MEMORY.md)", "65537"},
    {"HEALCL_CACHE_DIR", "binaries, tunings, self-tests; empty: nowhere",
     "`$XDG_CACHE_HOME/healcl`, `~/.cache/healcl`"},
    {"HEALCL_KEEP_BINARIES", "not empty: keep all binaries, also cheap ones", ""},
    {"HEALCL_ONE_PROCESS", "not empty: drivers run in no child process, for debuggers", ""},
    {"HEALCL_COMPILE_AHEAD", "`0`: no second process compiles the plan's end on a CPU", "it does"},
};

_Static_assert(PLACE_BYTES == 65537, "HEALCL_PLACE_BYTES has another default");

static void print_variables(FILE *stream)
{
    char families[160];
    size_t used = 0;
    for (int family = 0; family < FAMILY_COUNT; family++)
        used += (size_t)snprintf(families + used, sizeof families - used, "%s`%s`",
                                 family > 0 ? ", " : "",
                                 kernel_family_name((enum kernel_family)family));
    fputs("| variable | meaning | default |\n|---|---|---|\n", stream);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *meaning = variables[i].meaning, *place = strstr(meaning, "%s");
        const size_t before = place ? (size_t)(place - meaning) : strlen(meaning);
        const char *blank = *variables[i].otherwise ? " " : "";
        fprintf(stream, "| `%s` | %.*s%s%s |%s%s |\n", variables[i].name, (int)before, meaning,
                place ? families : "", place ? place + 2 : "", blank, variables[i].otherwise);
    }
}

/* ---------------------------------------------------------------- tunables */

/* A device of a kind, of which findings of the self-test, and whether it shares memory with the
 * host, differ from number to number. */
static struct device_tuning default_of(cl_device_type type, uint32_t number)
{
    const bool is_odd = number & 1;
    const struct device_info info = {.type = type,
                                     .little_endian = true,
                                     .double_width = 4,
                                     .max_work_group_size = 1024,
                                     .unified_memory = type == CL_DEVICE_TYPE_CPU || is_odd,
                                     .launches_overlap = is_odd,
                                     .multiply = number};
    return tuning_default(&info);
}

/* Whether kernels of the shapes that a tuning asks for read a tunable, or none at all does, as it
 * is for queues and memory. */
static bool is_read(const struct device_tuning *tuning, enum tunable tunable)
{
    uint32_t all = 0, read = 0;
    bool any;
    for (int f = 0; f < FAMILY_COUNT; f++)
        for (int shape = 0; shape < SHAPE_COUNT; shape++) {
            uint32_t tunables =
                shape_tunables((enum kernel_family)f, (enum kernel_shape)shape, &any);
            all |= tunables;
            if (shape == (int)tuning->shapes[f] || shape == SHAPE_GENERAL)
                read |= tunables;
        }
    return (read | ~all) >> tunable & 1;
}

/* "8", "1 or 16", "measured" of more, or a dash where nothing reads it. */
static void print_default(FILE *stream, cl_device_type type, enum tunable tunable)
{
    char values[MULTIPLY_COUNT][TUNABLE_TEXT_SIZE];
    uint32_t count = 0;
    for (uint32_t number = 0; number < MULTIPLY_COUNT; number++) {
        const struct device_tuning tuning = default_of(type, number);
        uint32_t i = 0;
        if (!is_read(&tuning, tunable))
            continue;
        tunable_format(&tuning, tunable, values[count]);
        while (strcmp(values[i], values[count]) != 0)
            i++;
        count += i == count;
    }
    if (count == 0)
        fputs(" –", stream);
    else if (count > 2)
        fputs(" measured", stream);
    else
        fprintf(stream, " %s%s%s", values[0], count == 2 ? " or " : "",
                count == 2 ? values[1] : "");
    fputs(" |", stream);
}

static void print_tunables(FILE *stream)
{
    static const cl_device_type types[] = {CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU,
                                           CL_DEVICE_TYPE_ACCELERATOR};
    fputs("| tunable | meaning | CPUs | GPUs | FPGAs |\n|---|---|---|---|---|\n", stream);
    for (int i = 0; i < TUNABLE_COUNT; i++) {
        fprintf(stream, "| `%s` | %s |", tunable_name((enum tunable)i),
                tunable_meaning((enum tunable)i));
        for (size_t type = 0; type < sizeof types / sizeof *types; type++)
            print_default(stream, types[type], (enum tunable)i);
        putc('\n', stream);
    }
}

void report_porting_markdown(FILE *stream)
{
    print_variables(stream);
    putc('\n', stream);
    print_tunables(stream);
    putc('\n', stream);
}
