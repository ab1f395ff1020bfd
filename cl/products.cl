/* Sums of products on vectors of eight elements of one type, ELEMENT: int or long. */
#ifndef ELEMENT
#error "ELEMENT is not given"
#endif
#if CHUNKS != 1
#error "vectors need CHUNKS=1"
#endif

#include "base/caches.cl"
#include "base/lanes.cl"
#include "base/divisor.cl"
#include "base/elements.cl"
#include "base/groups.cl"
#include "base/transpose.cl"
#include "sum/product_columns.cl"
#include "sum/product_rows.cl"
#include "sum/product_groups.cl"
