#include "mpi/request_list.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/file.h"

static const char suffix[] = ".npy";

enum { LINE_BYTES_MAX = 4096, SHARED_AT_ONCE = 1 << 30 };

/* ---------------------------------------------------------------- paths */

/* The paths of one input. */
struct paths {
    char **items;
    size_t count, capacity;
};

static void paths_release(struct paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    free(paths->items);
}

/* Takes path over; it is NULL without memory. */
static enum healcl_status paths_add(struct paths *paths, char *path, struct healcl_error *error)
{
    if (!path || !ARRAY_GROW(paths->items, paths->count, &paths->capacity)) {
        free(path);
        NO_MEMORY(error);
    }
    paths->items[paths->count++] = path;
    return HEALCL_OK;
}

/* The last part of a path, and how much of that is the request's name; 0 where it is none. */
static const char *name_in(const char *path, size_t *length)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t whole = strlen(name), end = strlen(suffix);
    *length = whole > end && strcmp(name + whole - end, suffix) == 0 ? whole - end : 0;
    return name;
}

static int by_name(const void *a, const void *b)
{
    size_t length_a, length_b;
    const char *name_a = name_in(*(char *const *)a, &length_a);
    const char *name_b = name_in(*(char *const *)b, &length_b);
    const int order = strncmp(name_a, name_b, length_a < length_b ? length_a : length_b);
    return order != 0 ? order : (length_a > length_b) - (length_a < length_b);
}

static void sort(struct paths *paths)
{
    if (paths->count > 0)
        qsort(paths->items, paths->count, sizeof *paths->items, by_name);
}

static enum healcl_status read_folder(DIR *folder, const char *place, struct paths *paths,
                                      struct healcl_error *error)
{
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        size_t length;
        (void)name_in(entry->d_name, &length);
        if (length == 0 || *entry->d_name == '.')
            continue;
        const size_t size = strlen(place) + strlen(entry->d_name) + 2;
        char *path = malloc(size);
        if (path)
            snprintf(path, size, "%s/%s", place, entry->d_name);
        TRY(paths_add(paths, path, error));
    }
    sort(paths);
    return HEALCL_OK;
}

static enum healcl_status read_lines(FILE *file, const char *place, struct paths *paths,
                                     struct healcl_error *error)
{
    char line[LINE_BYTES_MAX];
    for (size_t number = 1; fgets(line, sizeof line, file); number++) {
        size_t length = strlen(line);
        if (length == sizeof line - 1)
            FAIL(error, HEALCL_USAGE, PATH_FORMAT ": line %zu is too long", place, number);
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = 0;
        if (length == 0)
            continue;
        (void)name_in(line, &length);
        if (length == 0)
            FAIL(error, HEALCL_USAGE, PATH_FORMAT ": line %zu is no path of a file NAME.npy", place,
                 number);
        TRY(paths_add(paths, strdup(line), error));
    }
    if (ferror(file))
        FAIL_FILE(error, PATH_FORMAT ": cannot be read", place);
    return HEALCL_OK;
}

/* Folders first: what is none is a list. */
static enum healcl_status read_place(const char *place, struct paths *paths,
                                     struct healcl_error *error)
{
    DIR *folder = opendir(place);
    if (folder) {
        enum healcl_status status = read_folder(folder, place, paths, error);
        closedir(folder);
        return status;
    }
    int descriptor;
    TRY(file_open_regular(place, &descriptor, error));
    FILE *file = fdopen(descriptor, "r");
    if (!file)
        NO_MEMORY(error);
    enum healcl_status status = read_lines(file, place, paths, error);
    fclose(file);
    return status;
}

/* ---------------------------------------------------------------- requests */

/* Names become those of files, and lines of the journal. */
static enum healcl_status check_names(const struct paths *sorted, const char *place,
                                      struct healcl_error *error)
{
    if (sorted->count == 0)
        FAIL(error, HEALCL_USAGE, PATH_FORMAT ": there is no file NAME.npy", place);
    for (size_t i = 0; i < sorted->count; i++) {
        size_t length;
        const char *name = name_in(sorted->items[i], &length);
        if (strcspn(name, "\n") < length)
            FAIL(error, HEALCL_USAGE, PATH_FORMAT ": the name of a file holds a line feed", place);
        if (i > 0 && by_name(&sorted->items[i - 1], &sorted->items[i]) == 0)
            FAIL(error, HEALCL_USAGE, PATH_FORMAT ": two files are called '%.200s'", place, name);
    }
    return HEALCL_OK;
}

/* Adds a string with its 0. Before that text has room for it. */
static void add_word(struct request_list *list, const char *text, size_t length)
{
    memcpy(list->text + list->bytes, text, length);
    list->text[list->bytes + length] = 0;
    list->bytes += length + 1;
}

/* Of all requests, in the order of the first place. sorted: the paths of each place. */
static enum healcl_status join(struct request_list *list, const struct paths *order,
                               const struct paths *sorted, const char *const *places,
                               struct healcl_error *error)
{
    size_t bytes = 0;
    for (size_t input = 0; input < list->inputs; input++)
        for (size_t i = 0; i < sorted[input].count; i++)
            bytes += strlen(sorted[input].items[i]) + 1;
    for (size_t i = 0; i < order->count; i++)
        bytes += strlen(order->items[i]) + 1;
    list->text = malloc(bytes + 1);
    if (!list->text)
        NO_MEMORY(error);
    for (size_t i = 0; i < order->count; i++) {
        size_t length;
        const char *name = name_in(order->items[i], &length);
        add_word(list, name, length);
        for (size_t input = 0; input < list->inputs; input++) {
            char *const *found = bsearch(&order->items[i], sorted[input].items, sorted[input].count,
                                         sizeof *sorted[input].items, by_name);
            if (!found)
                FAIL(error, HEALCL_USAGE, PATH_FORMAT ": there is no '%.200s'", places[input],
                     name);
            add_word(list, *found, strlen(*found));
        }
    }
    list->count = order->count;
    return HEALCL_OK;
}

/* Finds where the words begin. */
static enum healcl_status find_words(struct request_list *list, struct healcl_error *error)
{
    const char *at = list->text;
    const size_t count = list->count * (list->inputs + 1);
    list->words = calloc(count + 1, sizeof *list->words);
    if (!list->words)
        NO_MEMORY(error);
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
        list->words[i] = at;
    return HEALCL_OK;
}

static enum healcl_status read_all(struct request_list *list, struct paths *order,
                                   struct paths *sorted, const char *const *places,
                                   struct healcl_error *error)
{
    TRY(read_place(places[0], order, error));
    for (size_t i = 0; i < list->inputs; i++) {
        TRY(read_place(places[i], &sorted[i], error));
        sort(&sorted[i]);
        TRY(check_names(&sorted[i], places[i], error));
        if (sorted[i].count != order->count)
            FAIL(error, HEALCL_USAGE, PATH_FORMAT " has %zu requests, not %zu as " PATH_FORMAT,
                 places[i], sorted[i].count, order->count, places[0]);
    }
    TRY(join(list, order, sorted, places, error));
    return find_words(list, error);
}

enum healcl_status request_list_read(struct request_list *list, const char *const *places,
                                     size_t count, struct healcl_error *error)
{
    struct paths order = {.items = NULL};
    struct paths *sorted = calloc(count + 1, sizeof *sorted);
    *list = (struct request_list){.inputs = count};
    if (!sorted)
        NO_MEMORY(error);
    enum healcl_status status = read_all(list, &order, sorted, places, error);
    paths_release(&order);
    for (size_t i = 0; i < count; i++)
        paths_release(&sorted[i]);
    free(sorted);
    return status;
}

enum healcl_status request_list_share(struct request_list *list, const struct ranks *ranks,
                                      struct healcl_error *error)
{
    uint64_t sizes[] = {list->count, list->inputs, list->bytes};
    MPI_Bcast(sizes, 3, MPI_UINT64_T, 0, ranks->comm);
    if (ranks->rank > 0) {
        *list = (struct request_list){
            .count = sizes[0], .inputs = sizes[1], .bytes = sizes[2], .text = malloc(sizes[2])};
        if (!list->text)
            NO_MEMORY(error);
    }
    for (size_t done = 0; done < list->bytes; done += SHARED_AT_ONCE) {
        const size_t left = list->bytes - done;
        MPI_Bcast(list->text + done, left < SHARED_AT_ONCE ? (int)left : SHARED_AT_ONCE, MPI_CHAR,
                  0, ranks->comm);
    }
    return ranks->rank > 0 ? find_words(list, error) : HEALCL_OK;
}

void request_list_release(struct request_list *list)
{
    free(list->words);
    free(list->text);
    *list = (struct request_list){.count = 0};
}
