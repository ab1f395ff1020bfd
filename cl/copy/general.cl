/* Copies and fills. */

/* Operands: out, in. */
KERNEL copy(SPACE, BUFFER(ELEMENT, out), BUFFER(const ELEMENT, in))
{
    TAKE_SPACE;
    for (struct run run = run_first(&space); run.length > 0; run_next(&space, &run))
        for (ulong i = 0; i < run.length; i++)
            AT(out, POSITION(space, run, 0, i)) = AT(in, POSITION(space, run, 1, i));
}

/* Operand: out. */
KERNEL fill(SPACE, BUFFER(ELEMENT, out), long value)
{
    TAKE_SPACE;
    for (struct run run = run_first(&space); run.length > 0; run_next(&space, &run))
        for (ulong i = 0; i < run.length; i++)
            AT(out, POSITION(space, run, 0, i)) = (ELEMENT)value;
}
