/* Two threads and two locks, each taken in the other order: a deadlock of the GIL and a mutex.
 *
 * Known answer: from abba_want on, its caller holds the GIL and waits for the mutex for ever; the
 * caller of abba_keep owns the mutex and waits for the GIL for ever.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t is_taken, is_wanted;

__attribute__((constructor)) static void prepare(void)
{
    sem_init(&is_taken, 0, 0);
    sem_init(&is_wanted, 0, 0);
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR)
        ;
}

/* Called without the GIL: takes the mutex, and then calls what takes the GIL. */
void abba_keep(void (*python_function)(void))
{
    pthread_mutex_lock(&mutex);
    sem_post(&is_taken);
    wait_for(&is_wanted);
    python_function();
    pthread_mutex_unlock(&mutex);
}

/* Called without the GIL: returns when somebody has the mutex. */
void abba_await_taken(void)
{
    wait_for(&is_taken);
}

/* Called with the GIL: takes the mutex. */
void abba_want(void)
{
    sem_post(&is_wanted);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}
