#include "plan/axes.h"

#include <string.h>

/* ---------------------------------------------------------------- signatures */

const char *step_letters(const struct step *step, int i, size_t *length)
{
    const char *signature = step_traits[step->kind].axes;
    static const char arrow[] = "->", each[] = "...";
    *length = sizeof each - 1;
    const char *out = strstr(signature, arrow);
    if (!out)
        return each;
    const char *word = i == STEP_OUT ? out + 2 : signature, *end = i == STEP_OUT ? NULL : out;
    for (; i != STEP_OUT && i > 0; i--) {
        const char *comma = memchr(word, ',', (size_t)(end - word));
        word = comma ? comma + 1 : end;
    }
    *length = strcspn(word, ",-");
    return word;
}

/* Writes capital letters for the positions of out's axes. */
static uint32_t letter_places(char *names, uint32_t count)
{
    static const char letters[LAYOUT_RANK + 1] = "ABCDEFGHIJKLMNOPQ";
    memcpy(names, letters, count);
    return count;
}

/* Names the axes for "...": by position, around an inserted axis, or before the last axes. */
static void name_places(const struct step *step, const char *word, size_t length, uint32_t rank,
                        char *names)
{
    const char mark = length > 0 ? word[0] : 0;
    const uint32_t at = (uint32_t)step->value[0];
    if (mark == '+') {
        letter_places(names, rank - 1);
        memmove(names + at + 1, names + at, rank - 1 - at);
        names[at] = word[1];
    } else if (mark == '=') {
        letter_places(names, rank);
        names[at] = word[1];
    } else {
        memcpy(names + letter_places(names, rank - (uint32_t)length), word, length);
    }
}

static void name_operand(const struct step *step, int i, char names[LAYOUT_RANK + 1])
{
    static const char places[] = "...";
    enum { PLACES = sizeof places - 1 };
    const uint32_t rank = step->operands[i]->layout.rank;
    size_t length;
    const char *word = step_letters(step, i, &length);
    if (length >= PLACES && memcmp(word, places, PLACES) == 0)
        name_places(step, word + PLACES, length - PLACES, rank, names);
    else
        for (uint32_t axis = 0; axis < rank; axis++) /* the first axes may be missing */
            names[axis] = length + axis < rank ? '*' : word[length + axis - rank];
}

bool step_is_elementwise(const struct step *step)
{
    return strcmp(step_traits[step->kind].axes, "...") == 0;
}

void step_axes(const struct step *step, struct step_axes *axes)
{
    memset(axes, 0, sizeof *axes);
    if (step_is_elementwise(step)) { /* the usual case, and calls wait for this */
        FOR_EACH_OPERAND (i, tensor, step) {
            letter_places(axes->names[i], tensor->layout.rank);
            if (step->kind == STEP_MULTIPLY_ADD && step->value[0] > 0)
                axes->names[i][step->out->layout.rank - step->value[1]] = '*';
        }
        return;
    }
    const struct step_traits *traits = &step_traits[step->kind];
    const char mixed = step->in[traits->mixed_by] ? traits->mixed : 0;
    FOR_EACH_OPERAND (i, tensor, step) {
        name_operand(step, i, axes->names[i]);
        for (char *name = axes->names[i]; mixed && *name; name++)
            *name = *name == mixed ? '*' : *name;
    }
}

int step_axis(const struct step_axes *axes, int i, char letter)
{
    const char *found = letter != '*' ? strchr(axes->names[i], letter) : NULL;
    return found && *found ? (int)(found - axes->names[i]) : NO_AXIS;
}

/* ---------------------------------------------------------------- moduli */

int step_moduli(const struct step *step)
{
    const int input = step_traits[step->kind].moduli;
    return input > 0 ? input : NO_INPUT;
}

bool step_moduli_of(const struct step *step, const struct step_axes *axes, int i,
                    struct tensor *moduli)
{
    const int input = step_moduli(step);
    bool related = false;
    if (input == NO_INPUT || i == input || !step->operands[i])
        return false;
    *moduli = *step->in[input];
    if (strcmp(axes->names[i], axes->names[input]) == 0)
        return true;
    const struct layout *vector = &step->in[input]->layout;
    moduli->layout = step->operands[i]->layout;
    moduli->layout.offset = vector->offset;
    for (uint32_t axis = 0; axis < moduli->layout.rank; axis++) {
        const int along = step_axis(axes, input, axes->names[i][axis]);
        moduli->layout.stride[axis] = along == NO_AXIS ? 0 : vector->stride[along];
        related |= along != NO_AXIS;
    }
    return related || vector->rank == 0;
}
