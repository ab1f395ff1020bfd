/* Programs that come from a package, and packages made of the programs of a device. */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "programs/internal.h"

/* ---------------------------------------------------------------- using a package */

enum healcl_status packaged_check(const struct healcl_device *device, struct healcl_error *error)
{
    const struct package *package = device->programs->package;
    const struct device_info *info = &device->info;
    const struct {
        const char *what, *packaged, *there;
    } rows[] = {
        {"the platform", package->platform, info->platform},
        {"the device", package->device, info->name},
        {"the driver", package->driver, info->driver},
        {"the version", package->version, info->version},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].packaged, rows[i].there) != 0)
            REFUSE(error,
                   "package " PATH_FORMAT " is for %s '%.200s', not '%.200s': make one with "
                   "healcl compile",
                   package->path, rows[i].what, rows[i].packaged, rows[i].there);
    return HEALCL_OK;
}

enum healcl_status packaged_tuning(const struct healcl_device *device, struct device_tuning *tuning,
                                   struct healcl_error *error)
{
    char what[600];
    snprintf(what, sizeof what, "the tuning of package " PATH_FORMAT,
             device->programs->package->path);
    *tuning = tuning_default(&device->info);
    tuning->tuned_by = TUNED_BY_PACKAGE;
    if (tuning_parse(tuning, device->programs->package->tuning, what, &device->info, error) ==
        HEALCL_OK)
        return HEALCL_OK;
    if (error)
        error->status = HEALCL_REFUSED;
    return HEALCL_REFUSED;
}

enum healcl_status packaged_choices(const struct healcl_device *device,
                                    struct kernel_choices *choices, struct healcl_error *error)
{
    if (!kernel_choices_parse(choices, device->programs->package->choices))
        REFUSE(error, "the choices of package " PATH_FORMAT " cannot be understood",
               device->programs->package->path);
    return HEALCL_OK;
}

static bool is_same_program(const struct package_program *packaged, const struct program *program)
{
    return strcmp(packaged->name, program->name) == 0 &&
           strcmp(packaged->options, program->all_options) == 0;
}

/* An image that another program has loaded is the same program to OpenCL. */
static enum healcl_status load_image(struct healcl_device *device, size_t index, cl_program *loaded,
                                     struct healcl_error *error)
{
    const struct opencl *cl = device->cl;
    const struct package_image *image = &device->programs->package->images[index];
    for (const struct program *other = device->programs->list; other; other = other->next)
        if (other->packaged && other->packaged->image == index) {
            TRY_CL(error, "clRetainProgram", cl->clRetainProgram(other->id));
            *loaded = other->id;
            return HEALCL_OK;
        }
    cl_int code = CL_SUCCESS, status = CL_SUCCESS;
    const unsigned char *data = image->data;
    cl_program id = cl->clCreateProgramWithBinary(device->context, 1, &device->info.device_id,
                                                  &image->bytes, &data, &status, &code);
    TRY_CL(error, "clCreateProgramWithBinary", code);
    if (status == CL_SUCCESS)
        status = cl->clBuildProgram(id, 1, &device->info.device_id, "", NULL, NULL);
    if (status != CL_SUCCESS) {
        (void)cl->clReleaseProgram(id);
        (void)opencl_error(error, status, "clBuildProgram", __FILE__, __LINE__);
        return is_out_of_memory(status) ? HEALCL_DEVICE : device_note_lack(device, HEALCL_DEVICE);
    }
    *loaded = id;
    return HEALCL_OK;
}

enum healcl_status packaged_load(struct healcl_device *device, struct program *program,
                                 struct healcl_error *error)
{
    const struct package *package = device->programs->package;
    const struct package_program *found = package->programs;
    const struct package_program *end = found + package->program_count;
    while (found < end && !is_same_program(found, program))
        found++;
    if (found == end)
        FAIL(error, device_note_lack(device, HEALCL_DEVICE),
             "program '%s' with options '%s' is not in " PATH_FORMAT
             ": make one with healcl compile",
             program->name, program->all_options, package->path);
    if (strcmp(found->source, program->source) != 0)
        FAIL(error, device_note_lack(device, HEALCL_DEVICE),
             "program '%s' in " PATH_FORMAT " was compiled from other sources than this healcl's: "
             "make one with healcl compile",
             program->name, package->path);
    TRY_PREFIX(load_image(device, found->image, &program->id, error),
               "program '%s' of " PATH_FORMAT ": ", program->name, package->path);
    program->packaged = found;
    program->loaded = true;
    device->programs->loaded++;
    return HEALCL_OK;
}

const char *packaged_symbol(const struct program *program, const char *name)
{
    const struct package_program *packaged = program->packaged;
    for (size_t i = 0; packaged && i < packaged->kernel_count; i++)
        if (strcmp(packaged->kernels[i].name, name) == 0)
            return packaged->kernels[i].symbol;
    return name;
}

/* ---------------------------------------------------------------- making one */

/* What clGetProgramInfo gives, with a zero behind it; freed with free(). */
static enum healcl_status program_text(struct healcl_device *device, const struct program *program,
                                       cl_program_info what, char **text,
                                       struct healcl_error *error)
{
    size_t bytes = 0;
    *text = NULL;
    TRY_CL(error, "clGetProgramInfo",
           device->cl->clGetProgramInfo(program->id, what, 0, NULL, &bytes));
    *text = calloc(1, bytes + 1);
    if (!*text)
        NO_MEMORY(error);
    TRY_CL(error, "clGetProgramInfo",
           device->cl->clGetProgramInfo(program->id, what, bytes, *text, NULL));
    return HEALCL_OK;
}

static enum healcl_status record_image(struct healcl_device *device, const struct program *program,
                                       struct package *package, size_t *image,
                                       struct healcl_error *error)
{
    unsigned char *data;
    size_t bytes;
    TRY(binary_get(device, program->id, &data, &bytes, error));
    return package_add_image(package, data, bytes, image, error);
}

/* Notes the kernels of a program, whose names are separated by semicolons. */
static enum healcl_status record_kernels(struct package_program *recorded, char *names,
                                         struct healcl_error *error)
{
    size_t most = 1;
    for (const char *at = names; *at; at++)
        most += *at == ';';
    recorded->kernels = calloc(most, sizeof *recorded->kernels);
    if (!recorded->kernels)
        NO_MEMORY(error);
    for (char *rest = NULL, *name = strtok_r(names, ";", &rest); name;
         name = strtok_r(NULL, ";", &rest))
        recorded->kernels[recorded->kernel_count++] = (struct package_kernel){name, name, NULL};
    return HEALCL_OK;
}

/* Notes those kernels that have been wanted. */
static enum healcl_status record_launched(struct package_program *recorded,
                                          const struct program *program, struct healcl_error *error)
{
    size_t count = 0;
    for (const struct kernel *kernel = program->kernels; kernel; kernel = kernel->next)
        count++;
    recorded->kernels = calloc(count + 1, sizeof *recorded->kernels);
    if (!recorded->kernels)
        NO_MEMORY(error);
    for (const struct kernel *kernel = program->kernels; kernel; kernel = kernel->next)
        recorded->kernels[recorded->kernel_count++] =
            (struct package_kernel){kernel->name, kernel->name, NULL};
    return HEALCL_OK;
}

/* What kernels of a manifest take, of those that have been wanted. */
static enum healcl_status record_arguments(struct healcl_device *device, struct program *program,
                                           struct package_program *recorded,
                                           struct healcl_error *error)
{
    for (struct kernel *kernel = program->kernels; kernel; kernel = kernel->next) {
        char text[KERNEL_ARGUMENTS_SIZE];
        free(kernel->arguments);
        kernel->arguments = NULL;
        if (!program->text || !kernel_arguments_find(device, kernel, text))
            continue;
        kernel->arguments = strdup(text);
        if (!kernel->arguments)
            NO_MEMORY(error);
        for (size_t i = 0; i < recorded->kernel_count; i++) {
            struct package_kernel *known = &recorded->kernels[i];
            if (known->name && strcmp(known->name, kernel->name) == 0)
                known->arguments = kernel->arguments;
        }
    }
    return HEALCL_OK;
}

static enum healcl_status record_program(struct healcl_device *device, struct program *program,
                                         struct package *package, enum device_record kind,
                                         struct package_program *recorded,
                                         struct healcl_error *error)
{
    recorded->name = program->name;
    recorded->options = program->all_options;
    recorded->local_size = program->local_size;
    memcpy(recorded->source, program->source, sizeof recorded->source);
    if (kind == RECORD_LAUNCHED) {
        TRY(record_launched(recorded, program, error));
        return record_arguments(device, program, recorded, error);
    }
    free(program->kernel_names);
    TRY(program_text(device, program, CL_PROGRAM_KERNEL_NAMES, &program->kernel_names, error));
    TRY(record_kernels(recorded, program->kernel_names, error));
    TRY(record_arguments(device, program, recorded, error));
    return kind == RECORD_BINARIES ? record_image(device, program, package, &recorded->image, error)
                                   : HEALCL_OK;
}

void packaged_name(const struct device_info *info, struct package *package)
{
    package->platform = info->platform;
    package->device = info->name;
    package->driver = info->driver;
    package->version = info->version;
}

enum healcl_status device_record(struct healcl_device *device, struct package *package,
                                 enum device_record kind, struct healcl_error *error)
{
    size_t count = 0;
    for (const struct program *program = device->programs->list; program; program = program->next)
        count++;
    package->programs = calloc(count + 1, sizeof *package->programs);
    if (!package->programs)
        NO_MEMORY(error);
    packaged_name(&device->info, package);
    for (struct program *program = device->programs->list; program; program = program->next)
        if (!program->failure)
            TRY_PREFIX(record_program(device, program, package, kind,
                                      &package->programs[package->program_count++], error),
                       "program '%s': ", program->name);
    return HEALCL_OK;
}
