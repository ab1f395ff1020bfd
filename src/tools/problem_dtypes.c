/* Which dtypes a form of an operation takes. */
#include "tools/problem.h"

int problem_also(const struct form *form)
{
    const char *also = form->operation->dtypes.also;
    return also ? form_parameter(form, also) : -1;
}

bool problem_is_index(const struct healcl_parameter_info *parameter)
{
    return parameter->kind == HEALCL_PARAMETER_PERM || parameter->kind == HEALCL_PARAMETER_INDICES;
}

bool problem_has_index(const struct form *form)
{
    for (uint32_t i = 0; i < form->parameter_count; i++)
        if (problem_is_index(&form->parameters[i]))
            return true;
    return false;
}

bool problem_accepts(const struct form *form, const struct problem_dtypes *dtypes)
{
    const struct dtype_rule *rule = &form->operation->dtypes;
    int also = problem_also(form);
    return (rule->values >> dtypes->value & 1) &&
           !(problem_has_index(form) && dtypes->index == DTYPE_INT8) &&
           (also < 0 || dtype_rule_allows(rule, rule->also, dtypes->value, dtypes->also));
}
