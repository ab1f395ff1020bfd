/*
 * How kernels are shaped on a device, and which kernels are preferred. These are measured tunables,
 * with defaults for each kind of device, never for a vendor.
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

/* Styles of kernels: how they use work-items. Each suits a kind of device. */
enum kernel_style {
    STYLE_GENERAL, /* any work-items, any layout */
    STYLE_VECTORS, /* large work-items with explicit vectors: wide, strong compute units */
    STYLE_LOCAL,   /* work-groups that share local memory: many thin work-items */
    STYLE_SINGLE,  /* one work-item, sizes fixed at compile time: FPGAs */
    STYLE_COUNT
};

enum { LAUNCHES_AT_ONCE_MAX = 16, BUILDS_AT_ONCE_MAX = 64 };

/* Ways to multiply 64-bit vectors in cl/base/divisor.cl, with the numbers of cl/base/geometry.h. */
enum multiply {
    MULTIPLY_BY_DOUBLES, /* quotients estimated in doubles */
    MULTIPLY_BY_HALVES,  /* halves of 32 bits */
    MULTIPLY_BY_MUL_HI,  /* lane by lane */
    MULTIPLY_COUNT
};

/* Names such as "doubles". */
const char *multiply_name(enum multiply multiply);

/* Numbers that shape kernels: tunables.def has their ranges. */
enum tunable {
#define TUNABLE(name, ...) TUNABLE_##name,
#include "opencl/tunables.def"
#undef TUNABLE
    TUNABLE_COUNT
};

struct device_tuning {
    union {
        struct {
#define TUNABLE(name, ...) uint32_t name;
#include "opencl/tunables.def"
#undef TUNABLE
        };
        uint32_t values[TUNABLE_COUNT]; /* the same tunables */
    };
    enum kernel_style styles[FAMILY_COUNT]; /* the preferred style of each family */
    uint32_t tuned_by; /* bits of enum tuning_source: what has changed the tuning; 0: default */
    const char *file;  /* the file of tunings/ that has changed it; or NULL */
    bool cached_is_unreadable; /* a cached tuning cannot be understood: CACHED_UNREADABLE */
};

enum tuning_source { TUNED_BY_KEPT = 1, TUNED_BY_ENVIRONMENT = 2, TUNED_BY_PACKAGE = 4 };

/* What has changed a tuning: "healcl tune", "the environment", "healcl tune and the environment",
 * "the package". With a file: "tunings/NAME.json", "tunings/NAME.json and the environment". NULL:
 * the tuning is the default. */
enum { TUNING_SOURCE_SIZE = 128 };
const char *tuning_source_name(const struct device_tuning *tuning, char text[TUNING_SOURCE_SIZE]);

/* Names such as "local_size". */
const char *tunable_name(enum tunable tunable);

/* Its meaning, for docs/PORTING.md. */
const char *tunable_meaning(enum tunable tunable);

/* A tunable's value as tuning_format writes it: a number, or a name of enum multiply. */
enum { TUNABLE_TEXT_SIZE = 16 };
void tunable_format(const struct device_tuning *tuning, enum tunable tunable,
                    char text[TUNABLE_TEXT_SIZE]);

/* Names such as "transform" and "vectors". */
const char *kernel_family_name(enum kernel_family family);
const char *kernel_style_name(enum kernel_style style);

/* Whether a family has variants of a style. */
bool kernel_family_has(enum kernel_family family, enum kernel_style style);

/* Whether HEALCL_AS is set, which names a kind of device. */
bool tuning_kind_is_forced(void);

/* The default for the kind of the device, or for the kind that HEALCL_AS names. */
struct device_tuning tuning_default(const struct device_info *info);

/*
 * Changes tuning as specified by text. Its items are joined by commas. They are "local_size=64",
 * "transform=vectors", or "vectors" for every family that has this style. what: the source of the
 * text, for the message. Errors: HEALCL_USAGE.
 */
enum healcl_status tuning_parse(struct device_tuning *tuning, const char *text, const char *what,
                                const struct device_info *info, struct healcl_error *error);

/* Writes a text that tuning_parse turns into the same tuning. */
enum { TUNING_TEXT_SIZE = 1024 };
void tuning_format(const struct device_tuning *tuning, char text[TUNING_TEXT_SIZE]);

/* ---------------------------------------------------------------- files */

/* The files of tunings/, embedded: the name and the text of each, then NULL. */
extern const char *const healcl_tuning_files[];

/*
 * Changes tuning as specified by the text of a file, if its patterns match the device. name is the
 * file's name. *specificity: the number of characters in the patterns that are not wildcards; 0 if
 * they do not match. Errors: HEALCL_REFUSED with the file and the key, if it is not such a file or
 * a value is out of the device's range; HEALCL_NO_MEMORY. After an error tuning is unchanged.
 */
enum healcl_status tuning_file_read(const char *name, const char *text,
                                    const struct device_info *info, struct device_tuning *tuning,
                                    uint32_t *specificity, struct healcl_error *error);

/* Changes tuning by the most specific embedded file that matches the device, if any. */
void tuning_of_files(const struct device_info *info, struct device_tuning *tuning);

/* ---------------------------------------------------------------- kept */

/*
 * The tuning that a device is opened with. It is the default of the device's kind, changed by its
 * file of tunings/ and by the result of `healcl tune` in the cache. Both are ignored if
 * HEALCL_AS names a kind. HEALCL_TUNING and then HEALCL_VARIANT change it further. Errors:
 * HEALCL_USAGE if the environment cannot be understood. Then *tuning ignores the environment.
 */
enum healcl_status tuning_of_device(const struct device_info *info, struct device_tuning *tuning,
                                    struct healcl_error *error);

/* Whether any family uses vectors. Only vectors need the tunable multiply. */
bool tuning_has_vectors(const struct device_tuning *tuning);

/* Must be reported once when a device with such a file is opened. */
#define CACHED_UNREADABLE \
    "what healcl tune stored for the device cannot be understood and is ignored: tune again"

/* Changes tuning to the tuning cached for this device and driver. Returns whether anything has
 * changed. A tuning that cannot be read or understood is ignored. If it cannot be understood, this
 * is noted in the tuning. */
bool tuning_read_cached(struct device_tuning *tuning, const struct device_info *info);

/* Caches a tuning. *path is the file, freed with free(), or NULL if nothing is cached:
 * HEALCL_CACHE_DIR is empty. Errors: HEALCL_USAGE if the file cannot be written. */
enum healcl_status tuning_cache(const struct device_tuning *tuning, const struct device_info *info,
                                char **path, struct healcl_error *error);

/*
 * Which of several vendors' kernels, or of their alternatives, is preferred. A choice is found by
 * `of`, a hash of the candidates, which changes when a candidate changes. The caller defines what
 * the value of a choice means.
 */
enum {
    KERNEL_CHOICES_MAX = 64, /* at least; the oldest ones are dropped */
    KERNEL_CHOICE_SIZE = 16 + 1 + 10 + 2,
    KERNEL_CHOICES_SIZE = KERNEL_CHOICES_MAX * KERNEL_CHOICE_SIZE
};
struct kernel_choices {
    char text[KERNEL_CHOICES_SIZE]; /* "<of, 16 hexadecimal digits>=<choice> " for each choice */
};

/* The choice for `of`; 0 if none was made. */
uint32_t kernel_choices_find(const struct kernel_choices *choices, uint64_t of);

/* Takes choices from a text. The last blank may be missing. Returns false if the text is anything
 * else. Then there are no choices. */
bool kernel_choices_parse(struct kernel_choices *choices, const char *text);

/* Makes a choice, and replaces an earlier one. */
void kernel_choices_set(struct kernel_choices *choices, uint64_t of, uint32_t choice);

/* As for tunings. Choices that cannot be read or understood are ignored. So are cached choices if
 * HEALCL_AS names a kind of device. */
void kernel_choices_read_cached(struct kernel_choices *choices, const struct device_info *info);
enum healcl_status kernel_choices_cache(const struct kernel_choices *choices,
                                        const struct device_info *info, char **path,
                                        struct healcl_error *error);

#endif
