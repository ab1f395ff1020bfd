/* Which axes of a step's operands correspond. Cutting all axes with the same letter alike leaves a
 * smaller step of the same kind. */
#ifndef HEALCL_PLAN_AXES_H
#define HEALCL_PLAN_AXES_H

#include "plan/memory.h"

enum { AXIS_LETTERS = 128, NO_AXIS = -1 };

/* A letter for each axis of each operand; absent operands have none. Axes named '*' are never cut.
 * Cutting along a letter that out also has gives a part of the result. Cutting along another
 * letter, the terms of sums, gives a step with fewer terms. */
struct step_axes {
    char names[STEP_OPERANDS][LAYOUT_RANK + 1];
};

/* Whether the axes of all operands correspond by position. */
bool step_is_elementwise(const struct step *step);

/* The letters that the signature has for operand i; sets *length. The operand may lack axes for the
 * first letters. Undefined for operands without letters. */
const char *step_letters(const struct step *step, int i, size_t *length);

/* Follows the signature in steps.def. Capital letters are positions of out's axes. */
void step_axes(const struct step *step, struct step_axes *axes);

/* The axis of operand i that has the letter, or NO_AXIS. */
int step_axis(const struct step_axes *axes, int i, char letter);

/* Which input of a step holds moduli, or NO_INPUT. */
int step_moduli(const struct step *step);

/* The modulus of each element of operand i, as a view of the operand's shape. Returns false if the
 * operand has no moduli, as for the moduli themselves. */
bool step_moduli_of(const struct step *step, const struct step_axes *axes, int i,
                    struct tensor *moduli);

#endif
