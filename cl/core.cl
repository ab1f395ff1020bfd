/* The kernels that work on tensors of one type, ELEMENT: char, int or long. They are one program,
 * since many compilers take longer to start than to compile. */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

#include "base/wide.cl"

#include "copy/general.cl"
#if WIDTH <= 4
#include "modular/general.cl"
#endif
#ifndef WIDE /* these have vectors of elements */
#include "sum/general.cl"
#include "base/derive.cl"
#endif
