/* The kernels on vectors of eight elements of one type, ELEMENT: int or long, for devices with wide
 * vectors and doubles. They form one program, as those of core.cl do. Sums of products take long to
 * compile, and have their own program: products.cl. */
#include "base/caches.cl"
#include "base/lanes.cl"
#include "base/divisor.cl"
#include "base/elements.cl"
#include "modular/vectors.cl"
#include "sum/columns.cl"
#ifdef __OPENCL_C_VERSION__ /* the tests' C compiler only has vectors of one lane */
#include "base/groups.cl"
#include "modular/interleaved.cl"
#include "modular/factors.cl"
#include "modular/multiply_add.cl"
#endif
