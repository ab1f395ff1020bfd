/* Folders of manifests, and the handle that stores their contents. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/registry.h"
#include "vendor/vendor.h"

enum { MANIFEST_MAX = 1 << 20, MANIFESTS_MAX = 1000, PATH_SIZE = 1024 };

const struct vendor_operations *vendor_of_table(const struct operation_table *table)
{
    return operation_table_owner(table);
}

static void operations_release(struct vendor_operations *handle)
{
    operation_table_free(handle->base.table);
    for (struct vendor_library *library = handle->libraries; library; library = library->next)
        (void)dlclose(library->handle);
    arena_free(handle->arena);
    free(handle);
}

enum healcl_status vendor_operations_create(struct vendor_operations **handle,
                                            struct healcl_error *error)
{
    struct vendor_operations *made = calloc(1, sizeof *made);
    NEED_MEMORY(made, error);
    made->arena = arena_create();
    if (!made->arena || operation_table_create(made, &made->base.table, error) != HEALCL_OK) {
        operations_release(made);
        NO_MEMORY(error);
    }
    made->base.self = &made->base;
    atomic_init(&made->base.owners, 1);
    *handle = made;
    return HEALCL_OK;
}

static enum healcl_status read_one(struct vendor_operations *handle, const char *folder,
                                   const char *name, bool is_trusted, struct healcl_error *error)
{
    char path[PATH_SIZE];
    unsigned char *text;
    size_t length;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= PATH_SIZE)
        FAIL_FOR(error, HEALCL_USAGE, FILE, "the path of '%.200s' is too long", name);
    TRY(file_read(path, MANIFEST_MAX, &text, &length, error));
    enum healcl_status status =
        input_note(path, NULL)
            ? manifest_read(handle, folder, path, (const char *)text, length, is_trusted, error)
            : ERROR(error, HEALCL_NO_MEMORY, "out of memory");
    free(text);
    return status;
}

static enum healcl_status operations_read_folder(struct vendor_operations *handle,
                                                 const char *folder, bool is_trusted,
                                                 struct healcl_error *error)
{
    struct dirent **names = NULL;
    int count = scandir(folder, &names, file_is_json, alphasort);
    enum healcl_status status = HEALCL_OK;
    if (count < 0)
        FAIL_FILE(error, "cannot read the folder '%.480s': %s", folder, strerror(errno));
    if (count == 0)
        status = ERROR(error, HEALCL_USAGE, "the folder '%.480s' has no manifest (*.json)", folder);
    else if (count > MANIFESTS_MAX)
        status = ERROR(error, HEALCL_USAGE, "the folder '%.480s' has more than %d manifests",
                       folder, MANIFESTS_MAX);
    if (status != HEALCL_OK)
        error_because(error, HEALCL_CAUSE_FILE);
    for (int i = 0; i < count && status == HEALCL_OK; i++)
        status = read_one(handle, folder, names[i]->d_name, is_trusted, error);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return status;
}

static enum healcl_status note_folder(struct vendor_operations *handle, const char *path,
                                      bool is_trusted, struct healcl_error *error)
{
    struct operation_folder *folder = arena_alloc(handle->arena, sizeof *folder);
    struct operation_folder **last = &handle->base.folders;
    char *kept = arena_strdup(handle->arena, path);
    NEED_MEMORY(folder && kept, error);
    *folder = (struct operation_folder){.path = kept, .is_trusted = is_trusted};
    while (*last)
        last = &(*last)->next;
    *last = folder;
    return HEALCL_OK;
}

static enum healcl_status operations_load(const char *folder, bool is_trusted,
                                          struct healcl_operations **handle,
                                          struct healcl_error *error)
{
    NEED(folder, error);
    NEED(handle, error);
    struct vendor_operations *made = (struct vendor_operations *)*handle;
    if (!made)
        TRY(vendor_operations_create(&made, error));
    enum healcl_status status = operations_read_folder(made, folder, is_trusted, error);
    THEN(status, note_folder(made, folder, is_trusted, error));
    if (status == HEALCL_OK)
        *handle = &made->base;
    else if (!*handle)
        operations_release(made);
    return status;
}

enum healcl_status healcl_operations_load(const char *folder, struct healcl_operations **handle,
                                          struct healcl_error *error)
{
    return operations_load(folder, false, handle, error);
}

enum healcl_status healcl_operations_load_trusted(const char *folder,
                                                  struct healcl_operations **handle,
                                                  struct healcl_error *error)
{
    return operations_load(folder, true, handle, error);
}

void healcl_operations_free(struct healcl_operations *handle)
{
    if (handle && atomic_fetch_sub(&handle->owners, 1) == 1)
        operations_release((struct vendor_operations *)handle);
}
