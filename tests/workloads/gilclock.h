/* What the C parts of the workloads share: clocks around every take and drop of the GIL. */
#ifndef GILCLOCK_H
#define GILCLOCK_H

#include <semaphore.h>
#include <stdint.h>
#include <sys/types.h>

#define LONG_NS 5000000 /* the switch interval: a wait of this length is a convoy's */

/* One kind of call, added up. The three pairs answer the same question with growing strictness. */
struct call_clock {
    uint64_t calls, ns;
    uint64_t over_calls, over_ns; /* calls that took more than OVER_NS */
    uint64_t slept_calls,
        slept_ns;        /* calls in which the thread gave up the CPU of its own accord */
    uint64_t long_calls; /* slept calls of at least LONG_NS */
    uint64_t longest_ns;
    /* Of the slept calls, those that the scheduler also interrupted, and how long the thread was
     * ready without a CPU in them. That delay may be a part of the wait (its end) or not (before
     * the thread looked at the GIL, or after it had it): the wait is known only up to it.
     */
    uint64_t disturbed_calls, disturbed_ns;
};

struct thread_clock {
    uint64_t tid;
    struct call_clock take, drop; /* PyEval_RestoreThread, PyEval_SaveThread */
    uint64_t holds, hold_ns, hold_began_ns;
    uint64_t began_ns, ended_ns;
    void *thread_state;
};

/* What the scheduler did to the thread so far. */
struct scheduling {
    uint64_t voluntary, involuntary; /* switches */
    uint64_t run_delay_ns;           /* ready to run, but without a CPU */
};

struct cpu_times {
    uint64_t wall_ns, cpu_ns;
    struct scheduling scheduling;
};

struct python_api {
    void *(*save_thread)(void);
    void (*restore_thread)(void *);
    int (*gilstate_ensure)(void);
};

extern struct python_api python;

uint64_t now_ns(void);
pid_t own_tid(void);
void busy_until(uint64_t deadline_ns);
void sleep_for(uint64_t ns);
void wait_for(sem_t *semaphore);

void read_scheduling(struct scheduling *scheduling);

/* Drop and take the GIL, adding to the clock. A thread holds the GIL from one to the other. */
void timed_drop(struct thread_clock *clock);
void timed_take(struct thread_clock *clock);

/* The first take of a thread that Python did not start. */
void timed_ensure(struct thread_clock *clock);

/* The workload's gate: every thread arrives without the GIL, begins at once, ends without it. */
void arrive(void);
void depart(struct thread_clock *clock) __attribute__((noreturn));

#endif
