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
    signature_text(form, text);
    for (const struct form *before = forms; before < form; before++)
        if (strcmp(signature_text(before, other), text) == 0)
            return true;
    return false;
}

const char *signature_kind(enum parameter_kind kind)
{
    switch (kind) {
    case PARAMETER_TENSOR:
    case PARAMETER_INDICES: return "tensor";
    case PARAMETER_OUT: return "out";
    case PARAMETER_SCALAR: return "scalar";
    case PARAMETER_MODULUS: return "modulus";
    case PARAMETER_INT: return "int";
    case PARAMETER_FLAG: return "flag";
    case PARAMETER_PERM: return "perm";
    case PARAMETER_HINT: return "hint";
    case PARAMETER_SHAPE: return "shape";
    case PARAMETER_INDEX: return "index";
    case PARAMETER_DTYPE: return "dtype";
    case PARAMETER_HOST: return "host";
    case PARAMETER_NOTHING: return "none";
    }
    return "?";
}
