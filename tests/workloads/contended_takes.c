/* Takes of the GIL that are contended for certain: the holder lets go only after the kernel says
 * that each waiter sleeps.
 *
 * Known answer: one wait for each waiter and round, no shorter than the round's length.
 */
#define _GNU_SOURCE
#include "gilclock.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct waiter {
    struct thread_clock *clock;
    uint64_t rounds;
    uint64_t *wait_ns; /* one for each round */
    sem_t go, taken;
    atomic_int is_taking;
};

size_t contended_waiter_size(void)
{
    return sizeof(struct waiter);
}

void contended_prepare(struct waiter *waiter, struct thread_clock *clock, uint64_t rounds,
                       uint64_t *wait_ns)
{
    waiter->clock = clock;
    waiter->rounds = rounds;
    waiter->wait_ns = wait_ns;
    sem_init(&waiter->go, 0, 0);
    sem_init(&waiter->taken, 0, 0);
    atomic_init(&waiter->is_taking, 0);
}

/* Called by a Python thread that holds the GIL; never returns. */
void contended_wait(struct waiter *waiter)
{
    struct thread_clock *clock = waiter->clock;
    clock->tid = (uint64_t)own_tid();
    clock->thread_state = python.save_thread();
    arrive();
    clock->began_ns = now_ns();
    for (uint64_t i = 0; i < waiter->rounds; i++) {
        wait_for(&waiter->go);
        uint64_t before_ns = clock->take.ns;
        atomic_store(&waiter->is_taking, 1);
        timed_take(clock);
        atomic_store(&waiter->is_taking, 0);
        waiter->wait_ns[i] = clock->take.ns - before_ns;
        timed_drop(clock);
        sem_post(&waiter->taken);
    }
    depart(clock);
}

static char task_state(pid_t tid)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return '?';
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    /* The command's name is in brackets and may hold anything. */
    char *bracket = strrchr(text, ')');
    return bracket != NULL && bracket[1] == ' ' ? bracket[2] : '?';
}

/* From the moment is_taking is set, the only place to sleep is the wait for the GIL. */
static void await_sleep(struct waiter *waiter)
{
    while (!atomic_load(&waiter->is_taking) || task_state((pid_t)waiter->clock->tid) != 'S')
        sched_yield();
}

/* Called by a Python thread that holds the GIL; never returns. In round i it takes the GIL, lets
 * every waiter run into it, keeps it for another length_ns[i], and drops it.
 */
void contended_hold(struct thread_clock *clock, struct waiter **waiters, uint64_t waiter_count,
                    const uint64_t *length_ns, uint64_t rounds)
{
    clock->tid = (uint64_t)own_tid();
    clock->thread_state = python.save_thread();
    arrive();
    clock->began_ns = now_ns();
    for (uint64_t i = 0; i < rounds; i++) {
        timed_take(clock);
        for (uint64_t w = 0; w < waiter_count; w++)
            sem_post(&waiters[w]->go);
        for (uint64_t w = 0; w < waiter_count; w++)
            await_sleep(waiters[w]);
        busy_until(now_ns() + length_ns[i]);
        timed_drop(clock);
        for (uint64_t w = 0; w < waiter_count; w++)
            wait_for(&waiters[w]->taken);
    }
    depart(clock);
}

/* Called by a Python thread that holds the GIL; never returns. Takes it back once, when *turn* is
 * its own: uncontended, because the next one waits for this one to be through.
 */
void contended_take_in_turn(struct thread_clock *clock, sem_t *turn, sem_t *next_turn)
{
    clock->tid = (uint64_t)own_tid();
    clock->thread_state = python.save_thread();
    arrive();
    clock->began_ns = now_ns();
    wait_for(turn);
    timed_take(clock);
    timed_drop(clock);
    sem_post(next_turn);
    depart(clock);
}

size_t contended_turn_size(void)
{
    return sizeof(sem_t);
}

void contended_turn_init(sem_t *turn, unsigned int value)
{
    sem_init(turn, 0, value);
}
