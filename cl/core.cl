/* The kernels for tensors of one type, ELEMENT: char, int or long. They form one program, since
 * many compilers take longer to start than to compile. If programs are built in parallel, each file
 * of core/ is its own program. */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif

#include "core/copies.cl"
#if WIDTH <= 4
#include "core/elementwise.cl"
#include "core/chain.cl"
#include "core/residues.cl"
#include "core/constant.cl"
#endif
#ifndef WIDE /* these use vectors of elements */
#include "core/sums.cl"
#include "core/multiply_add.cl"
#include "core/transform.cl"
#include "core/twiddles.cl"
#include "core/checks.cl"
#include "core/crt.cl"
#endif
