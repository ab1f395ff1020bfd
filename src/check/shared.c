#include "check/shared.h"

#include <stdlib.h>
#include <string.h>

/* Parameters that hold moduli, in all forms of ops.def. */
static bool is_modulus(const struct form *form, uint32_t i)
{
    const struct healcl_parameter_info *parameter = &form->parameters[i];
    return parameter->kind == HEALCL_PARAMETER_MODULUS || strcmp(parameter->name, "p") == 0 ||
           strcmp(parameter->name, "q") == 0;
}

static size_t elements_of(const struct problem *problem, uint32_t i)
{
    const struct problem_tensor *tensor = &problem->tensors[i];
    return tensor->present ? (size_t)layout_elements(&tensor->shape) : 1;
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The moduli of a call in rising order, repeated ones too; NULL without memory. The caller frees
 * them. */
static int64_t *moduli_of(const struct problem *problem, const struct problem_data *data,
                          size_t *count)
{
    const struct form *form = problem->form;
    size_t room = 1;
    *count = 0;
    for (uint32_t i = 0; i < form->parameter_count; i++)
        if (is_modulus(form, i))
            room += elements_of(problem, i);
    int64_t *moduli = calloc(room, sizeof *moduli);
    for (uint32_t i = 0; moduli && i < form->parameter_count; i++) {
        const struct problem_tensor *tensor = &problem->tensors[i];
        if (!is_modulus(form, i))
            continue;
        for (size_t j = 0; tensor->present && j < elements_of(problem, i); j++)
            moduli[(*count)++] = dtype_load(tensor->dtype, data->packed[i], (int64_t)j);
        const char *text = problem->text[i]; /* an integer, or "none" */
        if (!tensor->present && *text && strchr("-0123456789", *text))
            moduli[(*count)++] = strtoll(text, NULL, 10);
    }
    if (moduli)
        qsort(moduli, *count, sizeof *moduli, compare);
    return moduli;
}

/* Keeps of the shared moduli those among count others; each once. others: NULL where there was no
 * memory for them. */
static void keep_common(struct shared_facts *shared, const int64_t *others, size_t count)
{
    size_t kept = 0, j = 0;
    if (!others) {
        shared->modulus_count = 0;
        return;
    }
    for (size_t i = 0; i < shared->modulus_count; i++) {
        const int64_t modulus = shared->moduli[i];
        while (j < count && others[j] < modulus)
            j++;
        if (j < count && others[j] == modulus && (kept == 0 || shared->moduli[kept - 1] != modulus))
            shared->moduli[kept++] = modulus;
    }
    shared->modulus_count = kept;
}

void shared_add(struct shared_facts *shared, int64_t n, enum dtype dtype,
                const struct problem *problem, const struct problem_data *data)
{
    size_t count;
    int64_t *moduli = moduli_of(problem, data, &count);
    if (shared->count++ == 0) {
        *shared = (struct shared_facts){.count = 1,
                                        .same_n = true,
                                        .same_dtype = true,
                                        .n = n,
                                        .dtype = dtype,
                                        .moduli = moduli,
                                        .modulus_count = moduli ? count : 0};
        keep_common(shared, moduli, shared->modulus_count);
        return;
    }
    shared->same_n = shared->same_n && n == shared->n;
    shared->same_dtype = shared->same_dtype && dtype == shared->dtype;
    keep_common(shared, moduli, count);
    free(moduli);
}

void shared_release(struct shared_facts *shared)
{
    free(shared->moduli);
    *shared = (struct shared_facts){.count = 0};
}
