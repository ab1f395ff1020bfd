/* One lock of the process around finding, opening and closing devices. */
#include <pthread.h>

#include "device/internal.h"

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Recursive: to open a device is also to list what there is. Where it cannot be made so, the system
 * has no memory left for one mutex, and default attributes do no harm but a deadlock. */
static void make_lock(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void opening_begin(void)
{
    (void)pthread_once(&once, make_lock);
    (void)pthread_mutex_lock(&lock);
}

void opening_end(void)
{
    (void)pthread_mutex_unlock(&lock);
}
