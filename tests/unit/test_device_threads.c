/* Several threads that open a device each, as the first thing that their process does: in processes
 * of their own, since only the first calls into a loader and its drivers initialise them. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper_device.h"

enum { THREADS = 4, PROCESSES = 4, BYTES = 4096 };

struct work {
    pthread_barrier_t *start;
    bool tested; /* with the self-test: kernels are built and run */
    bool right;
};

static enum healcl_status write_and_read(struct healcl_device *device, bool *right,
                                         struct healcl_error *failure)
{
    struct buffer buffer = {.bytes = 0};
    unsigned char bytes[BYTES], read[BYTES];
    memset(bytes, 0xa5, sizeof bytes);
    enum healcl_status status = device_buffer_acquire(device, BYTES, false, &buffer, failure);
    if (status == HEALCL_OK)
        status = device_write(device, &buffer, 0, BYTES, bytes, failure);
    if (status == HEALCL_OK)
        status = device_read(device, &buffer, 0, BYTES, read, failure);
    if (status == HEALCL_OK)
        *right = memcmp(read, bytes, BYTES) == 0;
    device_buffer_release(device, &buffer);
    return status;
}

static void *open_use_close(void *argument)
{
    struct work *work = argument;
    struct healcl_device *device = NULL;
    struct healcl_error failure = {.status = HEALCL_OK};
    pthread_barrier_wait(work->start);
    enum healcl_status status = work->tested ? healcl_device_open(NULL, &device, &failure)
                                             : device_open(&opencl_loader, NULL, &device, &failure);
    if (status == HEALCL_OK)
        status = write_and_read(device, &work->right, &failure);
    if (status != HEALCL_OK)
        printf("%s\n", failure.message);
    healcl_device_close(device);
    healcl_error_clear(&failure);
    return NULL;
}

/* Runs the threads of a process. Returns its exit code. */
static int run_threads(bool tested)
{
    pthread_barrier_t start;
    pthread_t threads[THREADS];
    struct work work[THREADS];
    int code = 0;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct work){.start = &start, .tested = tested};
        if (pthread_create(&threads[i], NULL, open_use_close, &work[i]) != 0)
            return 2; /* the others wait at the barrier, and end with the process */
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        code |= !work[i].right;
    }
    fflush(stdout);
    return code;
}

static void threads_open_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < PROCESSES; i++) {
        int ended = 0;
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(run_threads(i == 0));
        assert_int_equal(waitpid(child, &ended, 0), child);
        if (WIFSIGNALED(ended))
            print_message("process %d died of signal %d\n", i, WTERMSIG(ended));
        assert_true(WIFEXITED(ended));
        assert_int_equal(WEXITSTATUS(ended), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {DEVICE_TEST(threads_open_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
