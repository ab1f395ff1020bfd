#include "plan/axes.h"

#include <string.h>

/* "ABC": as many letters as a layout has axes. */
static void letter_axes(char names[LAYOUT_RANK + 1], uint32_t rank)
{
    for (uint32_t axis = 0; axis < rank; axis++)
        names[axis] = (char)('A' + axis);
    names[rank] = 0;
}

/* ---- the axes of all operands, by kinds of steps ---- */

/* Each axis goes with that of the same place in the others. */
static void axes_by_place(const struct step *step, struct step_axes *axes)
{
    for (int i = 0; i < STEP_OPERANDS; i++)
        if (step_operand(step, i))
            letter_axes(axes->names[i], step_operand(step, i)->layout.rank);
}

/* Letters of their own, small ones, that stand for sizes. */
static void set_axes(const struct step *step, struct step_axes *axes,
                     const char *const names[STEP_OPERANDS])
{
    for (int i = 0; i < STEP_OPERANDS; i++)
        if (names[i] && step_operand(step, i))
            strcpy(axes->names[i], names[i]);
}

static void axes_transform(const struct step *step, struct step_axes *axes)
{
    set_axes(
        step, axes,
        (const char *const[STEP_OPERANDS]){"lrk*", "k", "k*", "*", "k", "k", [STEP_OUT] = "lrk*"});
}

static void axes_modmul_axis_sum(const struct step *step, struct step_axes *axes)
{
    const bool permutes = step->in[3] != NULL, shares = step->in[1]->layout.rank == 3;
    const char *b = permutes ? "rsk*" : "rskn";
    set_axes(step, axes,
             (const char *const[STEP_OPERANDS]){permutes ? "rsk*" : "rskn", shares ? b + 1 : b, "k",
                                                "*", [STEP_OUT] = permutes ? "rk*" : "rkn"});
}

static void axes_digits_full_q(const struct step *step, struct step_axes *axes)
{
    set_axes(step, axes, (const char *const[STEP_OPERANDS]){"lkr", "k", [STEP_OUT] = "l*r"});
}

static void axes_digits(const struct step *step, struct step_axes *axes)
{
    axes_by_place(step, axes);
    axes->names[STEP_OUT][step->out->layout.rank - 1] = '*';
}

static void axes_gather(const struct step *step, struct step_axes *axes)
{
    axes_by_place(step, axes);
    axes->names[0][step->value[0]] = '*';
}

/* a has one axis more. */
static void axes_axis_modsum(const struct step *step, struct step_axes *axes)
{
    axes_by_place(step, axes);
    const uint32_t axis = (uint32_t)step->value[0], rank = step->out->layout.rank;
    char *a = axes->names[0];
    const char *out = axes->names[STEP_OUT];
    memcpy(a, out, axis);
    a[axis] = 's';
    memcpy(a + axis + 1, out + axis, rank - axis + 1);
}

void step_axes(const struct step *step, struct step_axes *axes)
{
    static void (*const functions[STEP_KINDS])(const struct step *, struct step_axes *) = {
#define STEP(kind, name, in_place, adds, visits, reference, device, family, axes, ...) \
    [STEP_##kind] = axes_##axes,
#include "plan/steps.def"
#undef STEP
    };
    memset(axes, 0, sizeof *axes);
    functions[step->kind](step, axes);
}

int step_moduli(const struct step *step)
{
    switch (step->kind) {
    case STEP_MODMUL:
    case STEP_MODSUM:
    case STEP_MOD:
    case STEP_MODNEG:
    case STEP_CHAIN:
    case STEP_MODMUL_AXIS_SUM: return 2;
    case STEP_AXIS_MODSUM:
    case STEP_NTT:
    case STEP_INTT:
    case STEP_DIGITS_FULL_Q: return 1;
    case STEP_UPLOAD:
    case STEP_DOWNLOAD:
    case STEP_RELEASE:
    case STEP_FILL:
    case STEP_COPY:
    case STEP_ABS:
    case STEP_DIGITS:
    case STEP_GATHER:
    case STEP_VENDOR: break;
    }
    return NO_INPUT;
}
