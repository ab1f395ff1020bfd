/* Which axes of a step's operands go together: where all of one letter are cut alike, what is left
 * is a step again. */
#ifndef HEALCL_PLAN_AXES_H
#define HEALCL_PLAN_AXES_H

#include "plan/memory.h"

enum { AXIS_LETTERS = 128, NO_AXIS = -1 };

/* A letter for each axis of each operand; operands that are not there have none. Axes named '*' are
 * never cut. Only along letters that out has too is the part of a step a part of its result; along
 * others, the terms of sums, it is a step of fewer terms. */
struct step_axes {
    char names[STEP_OPERANDS][LAYOUT_RANK + 1];
};

/* Whether axes of all operands go together by their places. */
bool step_is_elementwise(const struct step *step);

/* The letters that the signature has for operand i, length of them, of which the first may not be
 * there; of operands without letters anything. */
const char *step_letters(const struct step *step, int i, size_t *length);

/* As the signature in steps.def tells: capital letters are places of out's axes. */
void step_axes(const struct step *step, struct step_axes *axes);

/* The axis of operand i that has a letter, or NO_AXIS. */
int step_axis(const struct step_axes *axes, int i, char letter);

/* Which input of a step holds moduli, or NO_INPUT. */
int step_moduli(const struct step *step);

/* The modulus of each element of operand i, as a view of the operand's shape. Returns false where
 * there are none, as of the moduli themselves. */
bool step_moduli_of(const struct step *step, const struct step_axes *axes, int i,
                    struct tensor *moduli);

#endif
