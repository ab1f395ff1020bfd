/* Operations by call: (a * b) mod q, summed over the rows, with no transcript. */
#include <healcl.h>
#include <stdio.h>

enum { ROWS = 3, COLUMNS = 4 };

int main(int argc, char **argv)
{
    static const int64_t shape[2] = {ROWS, COLUMNS}, moduli[COLUMNS] = {97, 101, 103, 107};
    int64_t a_data[ROWS][COLUMNS], b_data[ROWS][COLUMNS], sums[COLUMNS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            a_data[i][j] = 10 * i + j;
            b_data[i][j] = 7 + j;
        }
    struct healcl_error error = {0};
    struct healcl_device *device = NULL;
    struct healcl_queue *queue = NULL;
    struct healcl_tensor *a = NULL, *b = NULL, *q = NULL, *product = NULL, *sum = NULL;
    enum healcl_status status = healcl_device_open(argc > 1 ? argv[1] : NULL, &device, &error);
    if (status == HEALCL_OK)
        status = healcl_queue_open(device, NULL, &queue, &error);
    if (status == HEALCL_OK)
        status = healcl_tensor_create(queue, HEALCL_INT64, 2, shape, a_data, &a, &error);
    if (status == HEALCL_OK)
        status = healcl_tensor_create(queue, HEALCL_INT64, 2, shape, b_data, &b, &error);
    if (status == HEALCL_OK)
        status = healcl_tensor_create(queue, HEALCL_INT64, 1, shape + 1, moduli, &q, &error);
    if (status == HEALCL_OK)
        status = healcl_tensor_create(queue, HEALCL_INT64, 2, shape, NULL, &product, &error);
    if (status == HEALCL_OK)
        status = healcl_tensor_create(queue, HEALCL_INT64, 1, shape + 1, NULL, &sum, &error);

    const struct healcl_argument multiply[] = {healcl_tensor_argument(a), healcl_tensor_argument(b),
                                               healcl_tensor_argument(q),
                                               healcl_tensor_argument(product)};
    const struct healcl_argument add[] = {healcl_tensor_argument(product), healcl_int_argument(0),
                                          healcl_tensor_argument(q), healcl_tensor_argument(sum)};
    if (status == HEALCL_OK)
        status = healcl_call(queue, "modmul", 4, multiply, NULL, &error);
    if (status == HEALCL_OK)
        status = healcl_call(queue, "axis_modsum", 4, add, NULL, &error);
    if (status == HEALCL_OK)
        status = healcl_tensor_read(sum, sums, sizeof sums, &error); /* waits */
    if (status == HEALCL_OK)
        for (int j = 0; j < COLUMNS; j++)
            printf("%lld%s", (long long)sums[j], j + 1 < COLUMNS ? " " : "\n");
    else
        fprintf(stderr, "%s\n", error.message);
    struct healcl_tensor *all[] = {a, b, q, product, sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        healcl_tensor_release(all[i]);
    healcl_queue_close(queue);
    healcl_device_close(device);
    healcl_error_clear(&error);
    return status == HEALCL_OK ? 0 : 1;
}
