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

enum { LAUNCHES_AT_ONCE_MAX = 16, BUILDS_AT_ONCE_MAX = 64 };

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
    union {
        struct {
#define TUNABLE(name, ...) uint32_t name;
#include "opencl/tunables.def"
#undef TUNABLE
        };
        uint32_t values[TUNABLE_COUNT]; /* the same */
    };
    enum kernel_style styles[FAMILY_COUNT]; /* the first choice of each family */
    uint32_t tuned_by;         /* bits of enum tuning_source: what has changed it; 0: the default */
    const char *file;          /* of tunings/ that has changed it; or NULL */
    bool cached_is_unreadable; /* something was cached that cannot be understood: CACHED_UNREADABLE
                                */
};

enum tuning_source { TUNED_BY_KEPT = 1, TUNED_BY_ENVIRONMENT = 2, TUNED_BY_PACKAGE = 4 };

/* "healcl tune", "the environment", "healcl tune and the environment", "the package"; with a file
 * "tunings/NAME.json", "tunings/NAME.json and the environment"; NULL: it is the default. */
enum { TUNING_SOURCE_SIZE = 128 };
const char *tuning_source_name(const struct device_tuning *tuning, char text[TUNING_SOURCE_SIZE]);

/* "local_size" ... */
const char *tunable_name(enum tunable tunable);

/* Its meaning, for docs/PORTING.md. */
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

/* Writes a text that tuning_parse turns into the same tuning. */
enum { TUNING_TEXT_SIZE = 1024 };
void tuning_format(const struct device_tuning *tuning, char text[TUNING_TEXT_SIZE]);

/* ---------------------------------------------------------------- files */

/* The files of tunings/, embedded: the name and the text of each, then NULL. */
extern const char *const healcl_tuning_files[];

/*
 * Changes tuning as the text of a file of that name says, if its patterns match the device.
 * *specificity: how many characters of them are not wildcards; 0 where they do not match.
 * Errors: HEALCL_REFUSED where it is no such file, or a value is none for the device, with the
 * file and the key; HEALCL_NO_MEMORY. Then tuning stays.
 */
enum healcl_status tuning_file_read(const char *name, const char *text,
                                    const struct device_info *info, struct device_tuning *tuning,
                                    uint32_t *specificity, struct healcl_error *error);

/* Changes tuning by the most specific of the embedded files that match the device, if any. */
void tuning_of_files(const struct device_info *info, struct device_tuning *tuning);

/* ---------------------------------------------------------------- kept */

/*
 * A device is opened with this tuning: the default of its kind, changed by its file of tunings/ and
 * what `healcl tune` has kept for it, unless HEALCL_AS names another kind, by HEALCL_TUNING, and by
 * HEALCL_VARIANT.
 * Errors: HEALCL_USAGE where the environment cannot be understood; *tuning then is without it.
 */
enum healcl_status tuning_of_device(const struct device_info *info, struct device_tuning *tuning,
                                    struct healcl_error *error);

/* Whether any family has vectors, whose products multiply is about. */
bool tuning_has_vectors(const struct device_tuning *tuning);

/* To be told once where a device is opened beside such a file. */
#define CACHED_UNREADABLE \
    "what healcl tune has kept for the device is not understood, and left aside: tune again"

/* Changes tuning to what has been kept for this device with this driver. Returns whether anything
 * has; what cannot be read or understood is nothing, and the latter is noted. */
bool tuning_read_cached(struct device_tuning *tuning, const struct device_info *info);

/* Keeps a tuning. *path is the file, freed with free(), or NULL where nothing is to be cached:
 * HEALCL_CACHE_DIR is empty. Errors: HEALCL_USAGE where the file cannot be written. */
enum healcl_status tuning_cache(const struct device_tuning *tuning, const struct device_info *info,
                                char **path, struct healcl_error *error);

/*
 * Which of several kernels of others, or of their alternatives, goes before the rest: by a number
 * for those that there are to choose from, which is another one where one of these changes. What a
 * choice means is the caller's.
 */
enum { KERNEL_CHOICES_MAX = 64 };
struct kernel_choices {
    size_t count;
    struct {
        uint64_t of;
        uint32_t choice;
    } items[KERNEL_CHOICES_MAX]; /* the one made last at the end */
};

/* The choice; 0 where there is none. */
uint32_t kernel_choices_find(const struct kernel_choices *choices, uint64_t of);

/* A text has of each choice "<of, in hexadecimal>=<choice>", and a space or the end. */
enum {
    KERNEL_CHOICE_SIZE = 16 + 1 + 10 + 1,
    KERNEL_CHOICES_SIZE = KERNEL_CHOICES_MAX * KERNEL_CHOICE_SIZE + 1
};

void kernel_choices_format(const struct kernel_choices *choices, char text[KERNEL_CHOICES_SIZE]);

/* False for what that has not written; then there are no choices. */
bool kernel_choices_parse(struct kernel_choices *choices, const char *text);

/* Makes a choice, in the place of an earlier one; the oldest goes where there are too many. */
void kernel_choices_set(struct kernel_choices *choices, uint64_t of, uint32_t choice);

/* As for tunings. What cannot be read or understood is nothing; nor
 * is what was cached where HEALCL_AS names another kind of device. */
void kernel_choices_read_cached(struct kernel_choices *choices, const struct device_info *info);
enum healcl_status kernel_choices_cache(const struct kernel_choices *choices,
                                        const struct device_info *info, char **path,
                                        struct healcl_error *error);

#endif
