/* Tables of the plan's scalars as moduli: worked out on the host, once for all of them, so that an
 * operation with a modulus of its own takes one launch, as any other. */
#include "kernels/derived.h"

#include <stdlib.h>

__extension__ typedef unsigned __int128 uint128;

bool has_scalar_table(const struct step *step, int i, const struct healcl_device *device,
                      size_t entry_bytes)
{
    const struct storage *storage = step->in[i]->storage;
    return storage->scalars && (uint64_t)storage->elements <= device->chunk_bytes / entry_bytes;
}

/* As make_modulus in cl/base/arithmetic.h. value in [1, 2^63) */
static struct modulus make_modulus(uint64_t value)
{
    struct modulus modulus = {.value = value};
    while (value << modulus.shift >> 63 == 0)
        modulus.shift++;
    modulus.normalized = value << modulus.shift;
    modulus.reciprocal = (uint64_t)(~(uint128)0 / modulus.normalized); /* less 2^64 */
    return modulus;
}

/* As make_inverse in cl/base/divisor.cl. value in [1, 2^63) */
static struct scalar_lanes make_lanes(uint64_t value)
{
    struct scalar_lanes lanes;
    for (int i = 0; i < LANES; i++) {
        lanes.q[i] = value;
        lanes.inverse[i] = 1.0 / (double)value * (1 - 0x1.8p-50);
    }
    return lanes;
}

/* A scalar that counts as 1 where it cannot be a modulus: then it is none, for the plan has checked
 * those. */
static uint64_t modulus_at(const struct launcher *self, size_t place)
{
    int64_t value = self->plan->constants.values[place];
    return value < 1 ? 1 : (uint64_t)value;
}

enum healcl_status derive_scalar_moduli(struct launcher *self, const struct buffer **table,
                                        struct healcl_error *error)
{
    const size_t count = self->plan->constants.count;
    *table = &self->scalar_moduli;
    if (self->scalar_moduli.chunk_count > 0)
        return HEALCL_OK;
    struct modulus *moduli = calloc(count, sizeof *moduli);
    if (!moduli)
        NO_MEMORY(error);
    for (size_t i = 0; i < count; i++)
        moduli[i] = make_modulus(modulus_at(self, i));
    enum healcl_status status =
        launcher_upload(self, moduli, count * sizeof *moduli, &self->scalar_moduli, error);
    free(moduli);
    return status;
}

enum healcl_status derive_scalar_lanes(struct launcher *self, const struct buffer **table,
                                       struct healcl_error *error)
{
    const size_t count = self->plan->constants.count;
    *table = &self->scalar_lanes;
    if (self->scalar_lanes.chunk_count > 0)
        return HEALCL_OK;
    struct scalar_lanes *lanes = calloc(count, sizeof *lanes);
    if (!lanes)
        NO_MEMORY(error);
    for (size_t i = 0; i < count; i++)
        lanes[i] = make_lanes(modulus_at(self, i));
    enum healcl_status status =
        launcher_upload(self, lanes, count * sizeof *lanes, &self->scalar_lanes, error);
    free(lanes);
    return status;
}

void derived_forget_scalars(struct launcher *self)
{
    device_buffer_release(self->device, &self->scalar_moduli);
    device_buffer_release(self->device, &self->scalar_lanes);
}
