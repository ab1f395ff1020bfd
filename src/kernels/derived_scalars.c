/* Tables of the plan's scalars as moduli: worked out on the host, once for all of them, so that an
 * operation with a modulus of its own takes one launch, as any other. */
#include "kernels/derived.h"

#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 uint128;

/* As make_modulus in cl/base/arithmetic.h. */
struct modulus modulus_of(uint64_t value)
{
    struct modulus modulus = {.value = value};
    while (value << modulus.shift >> 63 == 0)
        modulus.shift++;
    modulus.normalized = value << modulus.shift;
    modulus.reciprocal = (uint64_t)(~(uint128)0 / modulus.normalized); /* less 2^64 */
    return modulus;
}

static void make_modulus(uint64_t value, void *entry)
{
    struct modulus modulus = modulus_of(value);
    memcpy(entry, &modulus, sizeof modulus);
}

/* As lane_moduli in cl/modular/vectors.cl. */
void set_lane(struct scalar_lanes *lanes, int lane, const struct modulus *modulus)
{
    lanes->q[lane] = modulus->value;
    lanes->inverse[lane] = 1.0 / (double)modulus->value * (1 - INVERSE_MARGIN);
    lanes->reciprocal[lane] = modulus->reciprocal;
    lanes->shift[lane] = modulus->shift;
}

/* value in [1, 2^63) */
static void make_lanes(uint64_t value, void *entry)
{
    struct scalar_lanes lanes;
    struct modulus modulus = modulus_of(value);
    for (int i = 0; i < LANES; i++)
        set_lane(&lanes, i, &modulus);
    memcpy(entry, &lanes, sizeof lanes);
}

/* Uploads an entry of so many bytes for each scalar, unless that was done before. A scalar that
 * cannot be a modulus is none, for the plan has checked those: it counts as 1. */
static enum healcl_status scalar_table(struct launcher *self, struct buffer *table,
                                       size_t entry_bytes,
                                       void (*make)(uint64_t value, void *entry),
                                       struct healcl_error *error)
{
    const size_t count = self->plan->constants.count;
    if (table->memory)
        return HEALCL_OK;
    char *entries = calloc(count, entry_bytes);
    if (!entries)
        NO_MEMORY(error);
    for (size_t i = 0; i < count; i++) {
        int64_t value = self->plan->constants.values[i];
        make(value < 1 ? 1 : (uint64_t)value, entries + i * entry_bytes);
    }
    enum healcl_status status =
        device_upload_memory(self->device, NULL, count * entry_bytes, entries, table, error);
    free(entries);
    return status;
}

enum healcl_status derive_scalar_moduli(struct launcher *self, const struct buffer **table,
                                        struct healcl_error *error)
{
    *table = &self->scalar_moduli;
    return scalar_table(self, &self->scalar_moduli, sizeof(struct modulus), make_modulus, error);
}

enum healcl_status derive_scalar_lanes(struct launcher *self, const struct buffer **table,
                                       struct healcl_error *error)
{
    *table = &self->scalar_lanes;
    return scalar_table(self, &self->scalar_lanes, sizeof(struct scalar_lanes), make_lanes, error);
}

void derived_forget_scalars(struct launcher *self)
{
    device_buffer_release(self->device, &self->scalar_moduli);
    device_buffer_release(self->device, &self->scalar_lanes);
}
