/* Holds of given lengths, one after the other, and what the thread did between them.
 *
 * Known answer: thread_clock.holds and .hold_ns, from a take's return to the next drop's call; and
 * every thread's wall time is its holds, its takes, its drops and hold_run.outside_ns.
 */
#define _GNU_SOURCE
#include "gilclock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct hold_run {
    const uint64_t *hold_ns, *release_ns; /* one after the other, and again from the beginning */
    uint64_t lengths;
    uint64_t rounds; /* so many holds, or, if 0, as many as begin within ns */
    uint64_t ns;
    uint64_t is_asleep;  /* holds without using the CPU, as a driver or a slow disk does */
    uint64_t outside_ns; /* without the GIL, and without wanting it */
};

static void spend(uint64_t ns, int is_asleep)
{
    if (is_asleep)
        sleep_for(ns);
    else
        busy_until(now_ns() + ns);
}

static void hold_again_and_again(struct thread_clock *clock, struct hold_run *run)
{
    uint64_t deadline_ns = clock->began_ns + run->ns;
    for (uint64_t i = 0;; i++) {
        spend(run->hold_ns[i % run->lengths], run->is_asleep != 0);
        timed_drop(clock);
        uint64_t dropped_ns = now_ns();
        uint64_t release_ns = run->release_ns[i % run->lengths];
        if (release_ns != 0)
            sleep_for(release_ns);
        uint64_t now = now_ns();
        run->outside_ns += now - dropped_ns;
        if (run->rounds != 0 ? i + 1 == run->rounds : now >= deadline_ns)
            return;
        timed_take(clock);
    }
}

/* Called by a Python thread that holds the GIL; never returns. */
void hold_run(struct thread_clock *clock, struct hold_run *run)
{
    clock->tid = (uint64_t)own_tid();
    clock->thread_state = python.save_thread();
    arrive();
    clock->began_ns = now_ns();
    timed_take(clock);
    hold_again_and_again(clock, run);
    depart(clock);
}

struct native_run {
    struct thread_clock *clock;
    struct hold_run *run;
};

static void *native_main(void *argument)
{
    struct native_run *native = argument;
    struct thread_clock *clock = native->clock;
    clock->tid = (uint64_t)own_tid();
    arrive();
    clock->began_ns = now_ns();
    timed_ensure(clock);
    hold_again_and_again(clock, native->run);
    depart(clock);
}

/* The same by a thread that Python did not start. */
int hold_run_native(struct thread_clock *clock, struct hold_run *run)
{
    static struct native_run natives[16];
    static unsigned int used;
    pthread_t thread;
    if (used == sizeof(natives) / sizeof(natives[0]))
        return EAGAIN;
    natives[used] = (struct native_run){clock, run};
    return pthread_create(&thread, NULL, native_main, &natives[used++]);
}

/* Called with the GIL held: says on *fd* that it is, and since when, as a line of JSON. */
static void announce(const struct thread_clock *clock, int fd, uint64_t ns)
{
    char line[128];
    int length =
        snprintf(line, sizeof(line), "{\"holding\": true, \"from_ns\": %llu, \"ns\": %llu}\n",
                 (unsigned long long)clock->hold_began_ns, (unsigned long long)ns);
    while (write(fd, line, (size_t)length) < 0 && errno == EINTR)
        ;
}

/* Called by a Python thread that holds the GIL, and returns with it: drops it and takes it back,
 * keeps it for *ns* without using the CPU, and drops and takes it once more. Returns when the hold
 * began; clock->hold_ns has grown by its length. If *exit_code* is not -1, the process ends with it
 * in the middle of the hold.
 */
uint64_t hold_once(struct thread_clock *clock, int fd, uint64_t ns, int exit_code)
{
    timed_drop(clock);
    timed_take(clock);
    uint64_t began_ns = clock->hold_began_ns;
    announce(clock, fd, ns);
    sleep_for(ns);
    if (exit_code != -1)
        _exit(exit_code);
    timed_drop(clock);
    timed_take(clock);
    return began_ns;
}
