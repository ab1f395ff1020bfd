/*
 * Fuzzes everything between a file's bytes and its tensors: reads all entries of a text and every
 * payload in them, in all the ways there are, and compares those ways with each other.
 */
#include "fuzz.h"

#include "transcript/entry.h"

/* Reads an array in two parts; they must give what the whole gives. */
static void check_parts(const struct payload *payload, enum dtype dtype, const void *whole,
                        int64_t count)
{
    size_t item_size = dtype_size(dtype);
    int64_t first = count / 3;
    unsigned char *parts = malloc((size_t)count * item_size + 1);
    struct healcl_error error = {.detail = NULL};
    EXPECT(parts);
    EXPECT(payload_read_part(payload, dtype, 0, first, parts, &error) == HEALCL_OK);
    EXPECT(payload_read_part(payload, dtype, first, count - first,
                             parts + (size_t)first * item_size, &error) == HEALCL_OK);
    EXPECT(memcmp(parts, whole, (size_t)count * item_size) == 0);
    free(parts);
}

static void check_payload(const struct payload *payload)
{
    int64_t count = layout_elements(&payload->layout);
    EXPECT((uint64_t)count * dtype_size(payload->dtype) <= payload->length);
    int64_t *wide = malloc((size_t)count * sizeof *wide + 1);
    void *array = malloc((size_t)count * sizeof *wide + 1);
    struct healcl_error error = {.detail = NULL};
    EXPECT(wide && array);
    EXPECT(payload_read(payload, DTYPE_INT64, wide, &error) == HEALCL_OK);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        enum healcl_status status = payload_read(payload, (enum dtype)dtype, array, &error);
        if (status != HEALCL_OK) {
            expect_told(status, &error);
            continue;
        }
        for (int64_t i = 0; i < count; i++)
            EXPECT(dtype_load((enum dtype)dtype, array, i) == wide[i]);
        check_parts(payload, (enum dtype)dtype, array, count);
    }
    free(array);
    free(wide);
}

static void check_entry(const struct entry *entry, size_t index)
{
    EXPECT(entry->index == index && strlen(entry->name) < 2 * 1024 * 1024);
    if (entry->kind != ENTRY_OPERATION)
        return;
    for (uint32_t i = 0; i < entry->argument_count && i < ENTRY_ARGUMENTS_MAX; i++) {
        const struct argument *argument = &entry->arguments[i];
        if (argument->kind == ARGUMENT_HOST_TENSOR && argument->host.present)
            check_payload(&argument->host.payload);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source source = {.text = (const char *)data, .length = size};
    struct healcl_error error = {.detail = NULL};
    struct entry_reader *reader;
    const struct entry *entry = NULL;
    struct arena *arena = arena_create();
    EXPECT(arena);
    EXPECT(entry_reader_open(&source, arena, &reader, &error) == HEALCL_OK);
    for (size_t index = 0;; index++) {
        enum healcl_status status = entry_reader_next(reader, &entry, &error);
        if (status != HEALCL_OK)
            expect_told(status, &error);
        if (status != HEALCL_OK || !entry)
            break;
        check_entry(entry, index);
    }
    entry_reader_close(reader);
    arena_free(arena);
    healcl_error_clear(&error);
    return 0;
}
