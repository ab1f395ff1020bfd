/*
 * How kernels are shaped on a device, and which go before others: measured tunables, with defaults
 * by the kind of device, never by its vendor.
 */
#ifndef HEALCL_OPENCL_TUNING_H
#define HEALCL_OPENCL_TUNING_H

#include <stdint.h>

#include "core/status.h"

struct device_info;

enum kernel_family {
#define FAMILY(name, variants) FAMILY_##name,
#include "opencl/families.def"
#undef FAMILY
    FAMILY_COUNT
};

/* Styles of kernels: how they use work-items, each for a kind of device. */
enum kernel_style {
    STYLE_GENERAL, /* any work-items, any layout */
    STYLE_VECTORS, /* fat work-items with explicit vectors: wide, strong compute units */
    STYLE_LOCAL,   /* work-groups that share local memory: many thin work-items */
    STYLE_SINGLE,  /* one work-item, sizes fixed when compiled: FPGAs */
    STYLE_COUNT
};

enum { LAUNCHES_AT_ONCE_MAX = 16 };

/* Ways to multiply 64 bits in vectors, as cl/base/geometry.h has them for cl/base/divisor.cl. */
enum multiply {
    MULTIPLY_BY_DOUBLES, /* quotients estimated in doubles */
    MULTIPLY_BY_HALVES,  /* halves of 32 bits */
    MULTIPLY_BY_MUL_HI,  /* lane by lane */
    MULTIPLY_COUNT
};

/* "doubles" ... */
const char *multiply_name(enum multiply multiply);

/* Numbers that shape kernels: tunables.def has their ranges. */
enum tunable {
#define TUNABLE(name, ...) TUNABLE_##name,
#include "opencl/tunables.def"
#undef TUNABLE
    TUNABLE_COUNT
};

struct device_tuning {
#define TUNABLE(name, ...) uint32_t name;
#include "opencl/tunables.def"
#undef TUNABLE
    enum kernel_style styles[FAMILY_COUNT]; /* the first choice of each family */
    uint32_t tuned_by;       /* bits of enum tuning_source: what has changed it; 0: the default */
    bool kept_is_unreadable; /* something was kept that cannot be understood: KEPT_UNREADABLE */
};

enum tuning_source { TUNED_BY_KEPT = 1, TUNED_BY_ENVIRONMENT = 2, TUNED_BY_PACKAGE = 4 };

/* "healcl tune", "the environment", "healcl tune and the environment", "the package"; NULL: it is
 * the default. */
const char *tuning_source_name(const struct device_tuning *tuning);

/* "local_size" ... */
const char *tunable_name(enum tunable tunable);

/* What it stands for, for docs/PORTING.md. */
const char *tunable_meaning(enum tunable tunable);

/* Its value as tuning_format writes it: a number, or a name of enum multiply. */
enum { TUNABLE_TEXT_SIZE = 16 };
void tunable_format(const struct device_tuning *tuning, enum tunable tunable,
                    char text[TUNABLE_TEXT_SIZE]);

/* "transform" ..., "vectors" ... */
const char *kernel_family_name(enum kernel_family family);
const char *kernel_style_name(enum kernel_style style);

/* Whether a family has variants of a style. */
bool kernel_family_has(enum kernel_family family, enum kernel_style style);

/* Whether HEALCL_AS names a kind of device that kernels are shaped for. Errors: HEALCL_USAGE where
 * it names none. */
enum healcl_status tuning_style_given(bool *given, struct healcl_error *error);

/* The default of a device's kind, or of the one that HEALCL_AS names. */
struct device_tuning tuning_default(const struct device_info *info);

/*
 * Changes tuning as text says: items joined by commas, of the kinds "local_size=64",
 * "transform=vectors", and "vectors" for every family that has that style. what: where the text is
 * from, for the message. Errors: HEALCL_USAGE.
 */
enum healcl_status tuning_parse(struct device_tuning *tuning, const char *text, const char *what,
                                const struct device_info *info, struct healcl_error *error);

/* What tuning_parse turns into the same tuning. */
enum { TUNING_TEXT_SIZE = 1024 };
void tuning_format(const struct device_tuning *tuning, char text[TUNING_TEXT_SIZE]);

#endif
