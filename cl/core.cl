/* The kernels that work on tensors of one type, ELEMENT: char, int or long. They are one program,
 * since many compilers take longer to start than to compile. */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

#include "copy/general.cl"
#include "modular/general.cl"
#include "sum/general.cl"
#ifndef SINGLE /* its stages are for work-groups */
#include "ntt/general.cl"
#endif
#include "base/derive.cl"
