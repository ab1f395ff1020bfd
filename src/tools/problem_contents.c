/* What is in the tensors of a problem, and how it is written. */
#include <stdio.h>

#include "tools/problem.h"

bool problem_is_free(const struct problem_tensor *tensor)
{
    return tensor->contents == CONTENTS_VALUES || tensor->contents == CONTENTS_TAME ||
           tensor->contents == CONTENTS_AROUND;
}

void problem_fill(const struct problem_tensor *tensor, struct random *random, void *array)
{
    int64_t count = layout_elements(&tensor->shape);
    switch (tensor->contents) {
    case CONTENTS_VALUES: random_fill_values(random, tensor->dtype, count, array); break;
    case CONTENTS_MODULI: random_fill_moduli(random, tensor->dtype, count, array); break;
    case CONTENTS_COPRIME: random_fill_coprime(random, tensor->dtype, count, array); break;
    case CONTENTS_PERMUTATION: random_fill_permutation(random, tensor->dtype, count, array); break;
    case CONTENTS_BETWEEN:
    case CONTENTS_AROUND:
        random_fill_between(random, tensor->dtype, count, tensor->low, tensor->high, array);
        break;
    case CONTENTS_TAME:
        random_fill_tame(random, tensor->dtype, count, tensor->high, random_once_in(random, 2),
                         array);
        break;
    }
}

const char *problem_text(const struct problem *problem, char text[PROBLEM_TEXT_SIZE])
{
    const struct form *form = problem->form;
    int used = snprintf(text, PROBLEM_TEXT_SIZE, "%s(", form->name);
    for (uint32_t i = 0; i < form->parameter_count; i++) {
        const struct problem_tensor *tensor = &problem->tensors[i];
        char shape[SHAPE_TEXT_SIZE];
        used += snprintf(text + used, PROBLEM_TEXT_SIZE - (size_t)used, "%s%s ", i ? ", " : "",
                         form->parameters[i].name);
        if (tensor->present)
            used += snprintf(text + used, PROBLEM_TEXT_SIZE - (size_t)used, "%s %s",
                             dtype_name(tensor->dtype), layout_shape_text(&tensor->shape, shape));
        else
            used += snprintf(text + used, PROBLEM_TEXT_SIZE - (size_t)used, "%s", problem->text[i]);
    }
    snprintf(text + used, PROBLEM_TEXT_SIZE - (size_t)used, ")");
    return text;
}
