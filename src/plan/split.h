/*
 * Parts of plans, for ranks that do one large request together: an input is split along an axis,
 * and with it all that the axis runs through, as the signatures of steps tell (axes.h).
 *
 * Each storage is whole on every rank, or split. A step that meets the axis does its rank's part of
 * it: what is whole is read in part. Where the axis is summed, each rank has a summand of the
 * result, and an exchange (struct exchange) makes it whole on all. What is only read in parts is
 * split too, back to its uploads.
 */
#ifndef HEALCL_PLAN_SPLIT_H
#define HEALCL_PLAN_SPLIT_H

#include "plan/derive.h"

/*
 * A plan_change, with a struct healcl_split. Parts of an axis differ by at most one index.
 * Exchanges end segments: what follows is a segment more, of the same name. Errors: HEALCL_USAGE
 * for an input, axis or rank that is none, and more ranks than the axis has indices; HEALCL_REFUSED
 * where an operation mixes the axis or takes a part of it, with entry and operation, and where
 * views leave fewer parts than ranks.
 */
enum healcl_status plan_split(struct rewrite *rewrite, const void *how, struct healcl_error *error);

/*
 * Finds the input and axis that leave a rank the least bytes where split->ranks share them: of
 * tensors that live at one time, and twice those that ranks add up, which each sends and gets.
 * Looks at the largest inputs where there are many. Errors: HEALCL_REFUSED where none can be split;
 * HEALCL_NO_MEMORY.
 */
enum healcl_status plan_choose_split(struct plan *plan, const struct healcl_limits *limits,
                                     struct healcl_split *split, struct healcl_error *error);

/* ---- exchanges ---- */

/* Ranks add up so many elements of a tensor at a time, each a piece: what one needs beside the
 * tensor are as many. */
enum { EXCHANGE_BLOCK = 1 << 20 };

/* Where a rank's piece of a block of so many elements begins; of rank `ranks` where the last ends.
 */
uint64_t exchange_piece(uint64_t elements, uint32_t rank, uint32_t ranks);

/* The bytes that a rank sends by one run of its part: of each block the others' pieces, and its own
 * one to each of them once it is the sum. */
uint64_t exchange_bytes_sent(const struct plan *plan, uint32_t rank, uint32_t ranks);

#endif
