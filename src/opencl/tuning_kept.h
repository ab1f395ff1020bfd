/* Tunings and choices among kernels that are kept for a device and its driver. */
#ifndef HEALCL_OPENCL_TUNING_KEPT_H
#define HEALCL_OPENCL_TUNING_KEPT_H

#include "opencl/device.h"

/*
 * What a device is opened with: the default of its kind, changed by what `healcl tune` has kept for
 * it, unless HEALCL_AS names another kind, by HEALCL_TUNING, and by HEALCL_VARIANT.
 * Errors: HEALCL_USAGE where the environment cannot be understood; *tuning then is without it.
 */
enum healcl_status tuning_of_device(const struct device_info *info, struct device_tuning *tuning,
                                    struct healcl_error *error);

/* To be told once where a device is opened beside such a file. */
#define KEPT_UNREADABLE \
    "what healcl tune has kept for the device is not understood, and left aside: tune again"

/* Changes tuning to what has been kept for this device with this driver. Returns whether anything
 * has; what cannot be read or understood is nothing, and the latter is noted. */
bool tuning_read_kept(struct device_tuning *tuning, const struct device_info *info);

/* Keeps a tuning. *path is the file, freed with free(), or NULL where nothing is to be kept:
 * HEALCL_CACHE_DIR is empty. Errors: HEALCL_USAGE where the file cannot be written. */
enum healcl_status tuning_keep(const struct device_tuning *tuning, const struct device_info *info,
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

/* Of each choice "<of, in hexadecimal>=<choice>", and a space or the end. */
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
 * is what was kept where HEALCL_AS names another kind of device. */
void kernel_choices_read_kept(struct kernel_choices *choices, const struct device_info *info);
enum healcl_status kernel_choices_keep(const struct kernel_choices *choices,
                                       const struct device_info *info, char **path,
                                       struct healcl_error *error);

#endif
