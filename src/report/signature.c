#include "report/signature.h"

#include <stdio.h>
#include <string.h>

const char *signature_text(const struct form *form, char text[SIGNATURE_SIZE])
{
    size_t length = (size_t)snprintf(text, SIGNATURE_SIZE, "%s(", form->name);
    for (uint32_t i = 0; i < form->parameter_count && length < SIGNATURE_SIZE; i++)
        length += (size_t)snprintf(text + length, SIGNATURE_SIZE - length, "%s%s",
                                   i > 0 ? ", " : "", form->parameters[i].name);
    if (length < SIGNATURE_SIZE)
        snprintf(text + length, SIGNATURE_SIZE - length, ")");
    return text;
}

bool signature_repeats(const struct form *form)
{
    char text[SIGNATURE_SIZE], other[SIGNATURE_SIZE];
    if (form_id(form) == OPERATION_COUNT) /* names of what was added are their own */
        return false;
    signature_text(form, text);
    for (const struct form *before = forms; before < form; before++)
        if (strcmp(signature_text(before, other), text) == 0)
            return true;
    return false;
}
