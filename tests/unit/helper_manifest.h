/* A manifest with one source, m.json and kernels.cl of a folder of its own, for programs whose
 * tests all use it. */
#ifndef HEALCL_TESTS_HELPER_MANIFEST_H
#define HEALCL_TESTS_HELPER_MANIFEST_H

#include "helper_one_device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "helper_folder.h"
#include "vendor/vendor.h"

static char folder[] = "/tmp/healcl_vendor_XXXXXX";
static struct healcl_operations *loaded;

/* For the set-up and the tear-down of the group; they open and close the device, too. */
static inline int load_manifest(void **state, const char *manifest, const char *kernels)
{
    if (open_device(state) != 0 || !mkdtemp(folder))
        return -1;
    write_file(folder, "m.json", manifest);
    write_file(folder, "kernels.cl", kernels);
    const enum healcl_status status = healcl_operations_load(folder, &loaded, &error);
    if (status != HEALCL_OK)
        print_error("%s\n", error.message);
    return status == HEALCL_OK ? 0 : -1;
}

static inline int unload_manifest(void **state)
{
    char path[128];
    healcl_operations_free(loaded);
    snprintf(path, sizeof path, "%s/m.json", folder);
    (void)unlink(path);
    snprintf(path, sizeof path, "%s/kernels.cl", folder);
    (void)unlink(path);
    (void)rmdir(folder);
    return close_device(state);
}

static inline const struct vendor_operation *operation_named(const char *name)
{
    size_t number = 0;
    while (strcmp(operation_at(loaded->table, number)->name, name) != 0)
        number++;
    return operation_at(loaded->table, number)->context;
}

#endif
