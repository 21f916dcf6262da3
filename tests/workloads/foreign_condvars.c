/* Threads that wait on condition variables of their own, without the GIL.
 *
 * Known answer: no wait for the GIL at all, however much the variables resemble one.
 */
#define _GNU_SOURCE
#include "gilclock.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

/* Laid out like CPython's struct _gil_runtime_state: a tool that judges by the neighbourhood of
 * the variable takes this one for a GIL that is held.
 */
struct lookalike {
    unsigned long interval_us;
    void *last_holder;
    int locked;
    unsigned long switch_number;
    pthread_cond_t cond;
    pthread_mutex_t mutex;
    pthread_cond_t switch_cond;
    pthread_mutex_t switch_mutex;
};

struct foreign_clock {
    uint64_t tid, waits, wait_ns;
};

struct foreign_job {
    struct foreign_clock *clock;
    uint64_t tick_ns, ns;
    int is_lookalike;
    struct lookalike lock;
};

static void prepare_lock(struct lookalike *lock, int is_lookalike)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    memset(lock, 0, sizeof(*lock));
    if (is_lookalike) {
        lock->interval_us = 5000;
        lock->last_holder = lock;
        lock->locked = 1;
        lock->switch_number = 17;
    }
    pthread_cond_init(&lock->cond, &attributes);
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->switch_cond, &attributes);
    pthread_mutex_init(&lock->switch_mutex, NULL);
    pthread_condattr_destroy(&attributes);
}

/* The order of take_gil: timed waits on cond, then a signal to whoever waits on switch_cond. */
static void wait_on(struct foreign_job *job)
{
    struct lookalike *lock = &job->lock;
    uint64_t began_ns = now_ns();
    uint64_t deadline_ns = began_ns + job->ns;
    while (now_ns() < deadline_ns) {
        uint64_t until_ns = now_ns() + job->tick_ns;
        struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
        pthread_mutex_lock(&lock->mutex);
        while (pthread_cond_timedwait(&lock->cond, &lock->mutex, &until) != ETIMEDOUT)
            ;
        pthread_mutex_unlock(&lock->mutex);
        pthread_mutex_lock(&lock->switch_mutex);
        pthread_cond_signal(&lock->switch_cond);
        pthread_mutex_unlock(&lock->switch_mutex);
        job->clock->waits++;
    }
    job->clock->wait_ns += now_ns() - began_ns;
}

static struct foreign_job jobs[16];
static unsigned int used;

static struct foreign_job *new_job(struct foreign_clock *clock, int is_lookalike, uint64_t tick_ns,
                                   uint64_t ns)
{
    if (used == sizeof(jobs) / sizeof(jobs[0]))
        return NULL;
    struct foreign_job *job = &jobs[used++];
    job->clock = clock;
    job->tick_ns = tick_ns;
    job->ns = ns;
    job->is_lookalike = is_lookalike;
    prepare_lock(&job->lock, is_lookalike);
    return job;
}

static void *foreign_main(void *argument)
{
    struct foreign_job *job = argument;
    struct thread_clock unused = {0};
    job->clock->tid = (uint64_t)own_tid();
    arrive();
    wait_on(job);
    depart(&unused);
}

/* A thread that Python does not know of. */
int foreign_start(struct foreign_clock *clock, int is_lookalike, uint64_t tick_ns, uint64_t ns)
{
    pthread_t thread;
    struct foreign_job *job = new_job(clock, is_lookalike, tick_ns, ns);
    return job == NULL ? EAGAIN : pthread_create(&thread, NULL, foreign_main, job);
}

/* A Python thread, in the middle of a blocking call; never returns. */
void foreign_wait(struct thread_clock *thread, struct foreign_clock *clock, int is_lookalike,
                  uint64_t tick_ns, uint64_t ns)
{
    struct foreign_job *job = new_job(clock, is_lookalike, tick_ns, ns);
    thread->tid = clock->tid = (uint64_t)own_tid();
    timed_drop(thread);
    arrive();
    thread->began_ns = now_ns();
    if (job != NULL)
        wait_on(job);
    depart(thread);
}
