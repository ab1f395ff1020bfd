/* Reads kernels of a manifest: their sources, options and libraries. */
#define REFUSED_CAUSE HEALCL_CAUSE_FORMAT
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/file.h"
#include "core/registry.h"
#include "vendor/manifest_reader.h"

enum { SOURCE_MAX = 4 << 20, PATH_SIZE = 1024 };

/* ---------------------------------------------------------------- files */

#define TRUST "allowed only in a trusted folder: --trust DIR"

/* The path of a file in the manifest's folder that a member names. */
static enum healcl_status path_of(const struct reader *reader, const cJSON *object,
                                  const char *member, char path[PATH_SIZE])
{
    const char *name;
    TRY(manifest_read_text(reader, object, member, true, TEXT_MAX, &name));
    if (strchr(name, '/') || *name == '.')
        REFUSE_AT(reader, object, member, "must be a file in the manifest's own folder");
    if (snprintf(path, PATH_SIZE, "%s/%s", reader->folder, name) >= PATH_SIZE)
        REFUSE_AT(reader, object, member, "its path is too long");
    if (!reader->is_trusted && file_leads_out(reader->folder, path))
        REFUSE_AT(reader, object, member,
                  "'%s' is a link that leads out of the manifest's folder: " TRUST, name);
    NEED_MEMORY(input_note(path, NULL), reader->error);
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- options of compilers */

/* Whether a text is NAME or NAME=VALUE. Quotes and backslashes are refused, because compilers split
 * texts at them in different ways. */
static bool is_macro(const char *text)
{
    char name[TEXT_MAX + 1];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
    return manifest_is_word(name) && !strpbrk(text, "\"'\\`");
}

/* A switch of OpenCL 1.2. No such switch names a file. */
static bool is_switch(const char *text)
{
    static const char all[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_=+.-";
    if (strcmp(text, "-w") == 0 || strcmp(text, "-Werror") == 0)
        return true;
    return strncmp(text, "-cl-", 4) == 0 && strspn(text, all) == strlen(text);
}

/* Allows only macros and switches. Other options can make compilers read or write files. */
static enum healcl_status check_options(const struct reader *reader, const cJSON *object,
                                        const char *options)
{
    bool is_name = false;
    for (const char *at = options + strspn(options, " "); *at; at += strspn(at, " ")) {
        char word[TEXT_MAX + 1];
        const size_t length = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        at += length;
        if (is_name ? is_macro(word)
                    : strcmp(word, "-D") == 0 || is_switch(word) ||
                          (strncmp(word, "-D", 2) == 0 && is_macro(word + 2))) {
            is_name = !is_name && strcmp(word, "-D") == 0;
            continue;
        }
        REFUSE_AT(reader, object, "options",
                  "'%s' is neither -D NAME[=VALUE], -cl-..., -w nor -Werror: " TRUST, word);
    }
    if (is_name)
        REFUSE_AT(reader, object, "options", "the name after -D is missing");
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- kernels */

static enum healcl_status read_source(const struct reader *reader, const cJSON *object,
                                      struct vendor_kernel *kernel)
{
    char path[PATH_SIZE], name[TEXT_MAX + 32];
    unsigned char *text;
    size_t length;
    TRY(path_of(reader, object, "source", path));
    TRY_AT(reader, object, "source", file_read(path, SOURCE_MAX, &text, &length, reader->error));
    enum healcl_status status = HEALCL_OK;
    if (strlen((const char *)text) != length)
        status = ERROR(reader->error, HEALCL_REFUSED, "the file contains a zero byte");
    THEN(status, manifest_keep(reader, (const char *)text, &kernel->source));
    free(text);
    TRY_AT(reader, object, "source", status);
    snprintf(name, sizeof name, "%s@%016llx", strrchr(path, '/') + 1,
             (unsigned long long)XXH64(kernel->source, length, 0));
    return manifest_keep(reader, name, &kernel->program);
}

static enum healcl_status read_defines(const struct reader *reader, const cJSON *object,
                                       const struct expression_names *names,
                                       struct vendor_kernel *kernel)
{
    const cJSON *defines = manifest_member(object, "defines");
    if (!defines)
        return HEALCL_OK;
    if (!cJSON_IsObject(defines))
        REFUSE_AT(reader, object, "defines", "must be an object");
    for (const cJSON *item = defines->child; item; item = item->next) {
        if (kernel->define_count == VENDOR_DEFINES_MAX)
            REFUSE_AT(reader, item, NULL, "exceeds the limit of %d", VENDOR_DEFINES_MAX);
        if (!manifest_is_word(item->string))
            REFUSE_AT(reader, item, NULL, "is not a valid macro name");
        TRY(manifest_keep(reader, item->string, &kernel->defines[kernel->define_count].name));
        TRY(manifest_read_expression(reader, item, names,
                                     &kernel->defines[kernel->define_count++].value));
    }
    return HEALCL_OK;
}

/* Writes "key_switch[STAGES=2,LOCAL=64]", or only the kernel's name. */
static enum healcl_status name_alternatives(const struct reader *reader,
                                            struct vendor_kernel *kernel)
{
    enum { NAME_SIZE = WORD_MAX + 2 + VENDOR_TUNABLES_MAX * (WORD_MAX + 24) };
    kernel->names = arena_alloc(reader->arena, kernel->alternative_count * sizeof *kernel->names);
    NEED_MEMORY(kernel->names, reader->error);
    for (uint32_t number = 0; number < kernel->alternative_count; number++) {
        struct expression_values values = {.integers = {0}};
        char name[NAME_SIZE];
        size_t used = (size_t)snprintf(name, sizeof name, "%s", kernel->kernel);
        vendor_set_alternative(kernel, number, &values);
        for (uint32_t i = 0; i < kernel->tunable_count; i++)
            used += (size_t)snprintf(name + used, sizeof name - used, "%s%s=%" PRId64,
                                     i > 0 ? "," : "[", kernel->tunables[i].name,
                                     values.integers[VENDOR_TUNABLES + i]);
        if (kernel->tunable_count > 0)
            snprintf(name + used, sizeof name - used, "]");
        TRY(manifest_keep(reader, name, &kernel->names[number]));
    }
    return HEALCL_OK;
}

static enum healcl_status read_tunable_values(const struct reader *reader, const cJSON *list,
                                              struct vendor_tunable *tunable)
{
    if (!cJSON_IsArray(list) || !list->child)
        REFUSE_AT(reader, list, NULL, "must be a list of integers");
    if (cJSON_GetArraySize(list) > VENDOR_TUNABLE_VALUES_MAX)
        REFUSE_AT(reader, list, NULL, "has more than %d items", VENDOR_TUNABLE_VALUES_MAX);
    for (const cJSON *item = list->child; item; item = item->next) {
        int64_t value;
        TRY(manifest_read_integer(reader, item, &value));
        for (uint32_t i = 0; i < tunable->count; i++)
            if (tunable->values[i] == value)
                REFUSE_AT(reader, item, NULL, "%" PRId64 " appears twice", value);
        tunable->values[tunable->count++] = value;
    }
    return HEALCL_OK;
}

/* Integers that a kernel's expressions may use too. Its source gets them as macros. */
static enum healcl_status read_tunables(const struct reader *reader, const cJSON *object,
                                        struct expression_names *names,
                                        struct vendor_kernel *kernel)
{
    const cJSON *tunables = manifest_member(object, "tunables");
    kernel->alternative_count = 1;
    if (tunables && !cJSON_IsObject(tunables))
        REFUSE_AT(reader, object, "tunables", "must be an object");
    for (const cJSON *item = tunables ? tunables->child : NULL; item; item = item->next) {
        const uint32_t number = VENDOR_TUNABLES + kernel->tunable_count;
        struct vendor_tunable *tunable = &kernel->tunables[kernel->tunable_count];
        if (kernel->tunable_count == VENDOR_TUNABLES_MAX)
            REFUSE_AT(reader, item, NULL, "exceeds the limit of %d", VENDOR_TUNABLES_MAX);
        if (!manifest_is_word(item->string))
            REFUSE_AT(reader, item, NULL, "is not a valid macro name");
        for (uint32_t i = 0; i < EXPRESSION_NAMES_MAX; i++)
            if (names->of[i].name && strcmp(names->of[i].name, item->string) == 0)
                REFUSE_AT(reader, item, NULL, "the name '%s' is already used", item->string);
        if (manifest_member(manifest_member(object, "defines"), item->string))
            REFUSE_AT(reader, item, NULL, "a define is already named '%s'", item->string);
        TRY(manifest_keep(reader, item->string, &tunable->name));
        TRY(read_tunable_values(reader, item, tunable));
        names->of[number] = (struct expression_name){tunable->name, .is_known = true};
        kernel->tunable_count++;
        kernel->alternative_count *= tunable->count;
        if (kernel->alternative_count > VENDOR_ALTERNATIVES_MAX)
            REFUSE_AT(reader, item, NULL, "there are more than %d combinations",
                      VENDOR_ALTERNATIVES_MAX);
    }
    return name_alternatives(reader, kernel);
}

enum healcl_status manifest_add_identity(const struct reader *reader, const cJSON *object,
                                         const struct vendor_kernel *kernel, uint64_t *identity)
{
    char *text = cJSON_PrintUnformatted(object);
    NEED_MEMORY(text, reader->error);
    *identity = XXH64(text, strlen(text), *identity);
    cJSON_free(text);
    if (kernel->program)
        *identity = XXH64(kernel->program, strlen(kernel->program), *identity);
    return HEALCL_OK;
}

/* The name of a tensor stands for its memory. Anything else is an integer expression. */
static enum healcl_status manifest_read_arguments(const struct reader *reader, const cJSON *object,
                                                  const struct expression_names *names,
                                                  struct vendor_kernel *kernel)
{
    const cJSON *list;
    TRY(manifest_read_list(reader, object, "arguments", true, VENDOR_ARGUMENTS_MAX, &list));
    for (const cJSON *item = list->child; item; item = item->next) {
        uint32_t number = 0;
        while (cJSON_IsString(item) && number < EXPRESSION_NAMES_MAX &&
               !(names->of[number].name && names->of[number].is_tensor &&
                 strcmp(names->of[number].name, item->valuestring) == 0))
            number++;
        bool is_tensor = cJSON_IsString(item) && number < EXPRESSION_NAMES_MAX;
        kernel->arguments[kernel->argument_count].tensor = is_tensor ? (int)number : NO_INPUT;
        if (!is_tensor)
            TRY(manifest_read_expression(reader, item, names,
                                         &kernel->arguments[kernel->argument_count].value));
        kernel->argument_count++;
    }
    return HEALCL_OK;
}

static const char *const kernel_members[] = {
    "step",   "source", "kernel",   "options", "device",    "type", "when",
    "global", "local",  "tunables", "defines", "arguments", NULL};

static const char *const native_members[] = {"step", "library", "entry",     "device",
                                             "type", "when",    "arguments", NULL};

static enum healcl_status read_library(struct reader *reader, const cJSON *object,
                                       struct vendor_kernel *kernel)
{
    char path[PATH_SIZE];
    struct pending *pending = arena_alloc(reader->arena, sizeof *pending);
    NEED_MEMORY(pending, reader->error);
    *pending = (struct pending){object, kernel, NULL, reader->pending};
    TRY(path_of(reader, object, "library", path));
    TRY(manifest_keep(reader, path, &pending->path));
    reader->pending = pending;
    return HEALCL_OK;
}

enum healcl_status manifest_load_library(const struct reader *reader, const struct pending *pending)
{
    struct vendor_operations *all = reader->operations;
    struct vendor_library *library = arena_alloc(all->arena, sizeof *library);
    NEED_MEMORY(library, reader->error);
    library->handle = dlopen(pending->path, RTLD_NOW | RTLD_LOCAL); /* the path contains '/' */
    if (!library->handle)
        REFUSE_AT(reader, pending->object, "library", "%.400s", dlerror());
    library->next = all->libraries;
    all->libraries = library;
    void *entry = dlsym(library->handle, pending->kernel->kernel);
    if (!entry)
        REFUSE_AT(reader, pending->object, "entry", "the library has no function '%s'",
                  pending->kernel->kernel);
    memcpy(&pending->kernel->native, &entry, sizeof entry); /* the conversion that POSIX requires */
    return HEALCL_OK;
}

enum healcl_status manifest_read_kernel(struct reader *reader, const cJSON *object,
                                        const struct expression_names *names,
                                        struct vendor_kernel **made)
{
    static const char *const types[] = {"any", "cpu", "gpu", "accelerator", NULL};
    size_t type;
    struct vendor_kernel *kernel = arena_alloc(reader->arena, sizeof *kernel);
    NEED_MEMORY(kernel, reader->error);
    kernel->manifest = reader->file_name;
    kernel->expression_names = names;
    struct expression_names with_strides = *names;
    with_strides.strides = true;
    for (uint32_t i = 0; i < EXPRESSION_NAMES_MAX; i++)
        with_strides.of[i].is_known = true;
    const bool is_native = manifest_member(object, "library") != NULL;
    TRY(manifest_check_members(reader, object, is_native ? native_members : kernel_members));
    TRY(manifest_read_word(reader, object, is_native ? "entry" : "kernel", &kernel->kernel));
    TRY(manifest_read_text(reader, object, "options", false, TEXT_MAX, &kernel->options));
    if (!kernel->options)
        kernel->options = "";
    if (!reader->is_trusted)
        TRY(check_options(reader, object, kernel->options));
    TRY(manifest_read_text(reader, object, "device", false, TEXT_MAX, &kernel->device));
    TRY(manifest_read_choice(reader, object, "type", types, "any", &type));
    kernel->type = type > 0 ? types[type] : NULL;
    TRY(read_tunables(reader, object, &with_strides, kernel));
    TRY(manifest_read_expression_member(reader, object, "when", false, &with_strides,
                                        &kernel->when));
    *made = kernel;
    TRY(manifest_read_arguments(reader, object, &with_strides, kernel));
    if (is_native)
        return read_library(reader, object, kernel);
    TRY(manifest_read_expression_member(reader, object, "global", true, &with_strides,
                                        &kernel->global));
    TRY(manifest_read_expression_member(reader, object, "local", true, &with_strides,
                                        &kernel->local));
    TRY(read_defines(reader, object, &with_strides, kernel));
    return read_source(reader, object, kernel);
}
