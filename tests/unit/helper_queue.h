/* Queues of operations by call, for tests that leave tensors to them. */
#ifndef HEALCL_TESTS_HELPER_QUEUE_H
#define HEALCL_TESTS_HELPER_QUEUE_H

#include "run/queue.h"

/* Closes a queue, and releases the handles of its tensors that are left. */
static inline void close_queue(struct healcl_queue *queue)
{
    (void)!queue_free_released(queue, NULL);
    for (struct healcl_tensor *tensor = queue->tensors, *next; tensor; tensor = next) {
        next = tensor->next;
        healcl_tensor_release(tensor);
    }
    healcl_queue_close(queue);
}

#endif
