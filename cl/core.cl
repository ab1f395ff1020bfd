/* The kernels that work on tensors of one type, ELEMENT: char, int or long. They are one program,
 * since many compilers take longer to start than to compile. */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

#include "memory.cl"
#include "elementwise.cl"
#include "sum.cl"
#include "transform.cl"
#include "derive.cl"
