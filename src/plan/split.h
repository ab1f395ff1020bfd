/*
 * Parts of plans, for ranks that process one large request together. An input is split along an
 * axis. So is everything that the axis runs through, according to the signatures of steps (axes.h).
 *
 * Each storage is either whole on every rank, or split. A step that meets the axis does its rank's
 * part, and reads parts of whole operands. If the axis is summed, each rank holds a summand of the
 * result, and an exchange (struct exchange) gives the sum to all ranks. Storages that are only read
 * in parts are split too, back to their uploads.
 */
#ifndef HEALCL_PLAN_SPLIT_H
#define HEALCL_PLAN_SPLIT_H

#include "plan/derive.h"

/*
 * A plan_change; how: a struct healcl_split. Parts of an axis differ by at most one index. An
 * exchange ends its segment; a further segment of the same name follows. Errors: HEALCL_USAGE for
 * an input, axis or rank that does not exist, and for more ranks than the axis has indices.
 * HEALCL_REFUSED if an operation mixes the axis or takes a part of it, with entry and operation, or
 * if views leave fewer parts than ranks.
 */
enum healcl_status plan_split(struct rewrite *rewrite, const void *how, struct healcl_error *error);

/*
 * Finds the input and axis whose split costs each of split->ranks ranks the least, as a share of
 * the whole plan. Counts the most bytes that tensors take at one time, twice the exchanged tensors,
 * which each rank sends and receives, and the elements visited. Tries only the largest inputs if
 * there are many. Errors: HEALCL_REFUSED if no input can be split; HEALCL_NO_MEMORY.
 */
enum healcl_status plan_choose_split(struct plan *plan, const struct healcl_plan_options *options,
                                     struct healcl_split *split, struct healcl_error *error);

/* ---- exchanges ---- */

/* Elements of a tensor that ranks add up at a time. Each rank adds up one piece of these. A rank
 * needs this many elements beside the tensor. */
enum { EXCHANGE_BLOCK = 1 << 20 };

/* Where the piece of rank `rank` begins in a block of `elements` elements. For rank == ranks, where
 * the last piece ends. */
uint64_t exchange_piece(uint64_t elements, uint32_t rank, uint32_t ranks);

/* The bytes that a rank sends in one run of its part. For each block it sends the other ranks'
 * pieces, then its own summed piece to each of them. */
uint64_t exchange_bytes_sent(const struct plan *plan, uint32_t rank, uint32_t ranks);

#endif
