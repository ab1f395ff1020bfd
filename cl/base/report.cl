#ifndef HEALCL_CL_REPORT
#define HEALCL_CL_REPORT

/* As report, with the value of the reported element: number n * index of operand 0. */
static inline void report_value(volatile global struct status *status, const struct space *space,
                                global const ELEMENT *in, count_t n, count_t index)
{
    if (!report(status, space->key, index))
        return;
    /* Meanwhile another work-item may report a smaller index. The last one to store a value checks
     * again. */
    uint found;
    do {
        found = atomic_or(&status->index, 0u);
        count_t rest = found * n;
        place_t place = (place_t)space->operand[0].offset;
        for (uint axis = RANK(*space); axis-- > 0;) {
            count_t next = axis > 0 ? divide_by_axis(rest, space, axis) : 0;
            place += (place_t)(rest - next * (count_t)space->shape[axis]) *
                     (place_t)space->operand[0].stride[axis];
            rest = next;
        }
        status->value = WIDEN(AT(in, place));
        mem_fence(CLK_GLOBAL_MEM_FENCE);
    } while (atomic_or(&status->index, 0u) != found);
}

#endif
