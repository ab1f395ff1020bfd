/* Calls of queues, on the program's one device and on the host reference. */
#ifndef HEALCL_TESTS_HELPER_QUEUE_CALLS_H
#define HEALCL_TESTS_HELPER_QUEUE_CALLS_H

#include "helper_one_device.h"
#include "helper_queue.h"

#define TENSOR(tensor) healcl_tensor_argument(tensor)
#define INT(value) healcl_int_argument(value)
#define CALL(queue, name, result, ...)                                                            \
    healcl_call(queue, name,                                                                      \
                sizeof((struct healcl_argument[]){__VA_ARGS__}) / sizeof(struct healcl_argument), \
                (struct healcl_argument[]){__VA_ARGS__}, result, &error)

/* on: NULL for the host reference. */
__attribute__((unused)) static struct healcl_queue *open_queue(struct healcl_device *on)
{
    struct healcl_queue *queue = NULL;
    OK(healcl_queue_open(on, NULL, &queue, &error));
    return queue;
}

/* A tensor of int64; data: NULL for zeros. */
__attribute__((unused)) static struct healcl_tensor *create_tensor(struct healcl_queue *queue,
                                                                   uint32_t rank,
                                                                   const int64_t *sizes,
                                                                   const void *data)
{
    struct healcl_tensor *tensor = NULL;
    OK(healcl_tensor_create(queue, HEALCL_INT64, rank, sizes, data, &tensor, &error));
    assert_non_null(tensor);
    return tensor;
}

#endif
