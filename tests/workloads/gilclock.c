/* A clock in C around each take and drop of the GIL, and threads that hold it for a known time.
 *
 * Known answer: thread_clock.take and .drop are what the thread spent in PyEval_RestoreThread and
 * PyEval_SaveThread; their slept_* members are its waits. Built without Python's headers, so one
 * shared library serves every version; to be loaded with ctypes.PyDLL, which keeps the GIL.
 */
#define _GNU_SOURCE
#include "gilclock.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OVER_NS 2000

struct python_api python;

static sem_t arrived, begun, departed;

__attribute__((constructor)) static void prepare(void)
{
    *(void **)&python.save_thread = dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
    *(void **)&python.restore_thread = dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
    *(void **)&python.gilstate_ensure = dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    sem_init(&arrived, 0, 0);
    sem_init(&begun, 0, 0);
    sem_init(&departed, 0, 0);
}

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

pid_t own_tid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

void busy_until(uint64_t deadline_ns)
{
    while (now_ns() < deadline_ns)
        ;
}

void sleep_for(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR)
        ;
}

static void add_call(struct call_clock *clock, uint64_t ns, const struct scheduling *before,
                     const struct scheduling *after)
{
    clock->calls++;
    clock->ns += ns;
    if (ns > OVER_NS) {
        clock->over_calls++;
        clock->over_ns += ns;
    }
    if (after->voluntary == before->voluntary)
        return;
    clock->slept_calls++;
    clock->slept_ns += ns;
    clock->long_calls += ns >= LONG_NS;
    if (ns > clock->longest_ns)
        clock->longest_ns = ns;
    if (after->involuntary != before->involuntary) {
        clock->disturbed_calls++;
        clock->disturbed_ns += after->run_delay_ns - before->run_delay_ns;
    }
}

void timed_drop(struct thread_clock *clock)
{
    struct scheduling before, after;
    read_scheduling(&before);
    uint64_t before_ns = now_ns();
    if (clock->hold_began_ns != 0) {
        clock->holds++;
        clock->hold_ns += before_ns - clock->hold_began_ns;
        clock->hold_began_ns = 0;
    }
    clock->thread_state = python.save_thread();
    uint64_t after_ns = now_ns();
    read_scheduling(&after);
    add_call(&clock->drop, after_ns - before_ns, &before, &after);
}

void timed_take(struct thread_clock *clock)
{
    struct scheduling before, after;
    read_scheduling(&before);
    uint64_t before_ns = now_ns();
    python.restore_thread(clock->thread_state);
    clock->hold_began_ns = now_ns();
    read_scheduling(&after);
    add_call(&clock->take, clock->hold_began_ns - before_ns, &before, &after);
}

void timed_ensure(struct thread_clock *clock)
{
    struct scheduling before, after;
    read_scheduling(&before);
    uint64_t before_ns = now_ns();
    python.gilstate_ensure();
    clock->hold_began_ns = now_ns();
    read_scheduling(&after);
    add_call(&clock->take, clock->hold_began_ns - before_ns, &before, &after);
}

void arrive(void)
{
    sem_post(&arrived);
    wait_for(&begun);
}

/* A thread that returned to Python would need the GIL once more, outside the measured time. */
void depart(struct thread_clock *clock)
{
    clock->ended_ns = now_ns();
    sem_post(&departed);
    for (;;)
        pause();
}

/* For the main thread, through ctypes.CDLL, which lets go of the GIL meanwhile. */
void gilclock_await_arrivals(int threads)
{
    while (threads-- > 0)
        wait_for(&arrived);
}

void gilclock_begin(int threads)
{
    for (int i = 0; i < threads; i++)
        sem_post(&begun);
}

void gilclock_await_departures(int threads)
{
    while (threads-- > 0)
        wait_for(&departed);
}

static void sample(struct cpu_times *times)
{
    struct timespec cpu;
    read_scheduling(&times->scheduling);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    times->cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
    times->wall_ns = now_ns();
}

/* A Python thread enters and leaves the measured time; in between it runs Python code. */
void gilclock_enter(struct thread_clock *clock, struct cpu_times *times)
{
    clock->tid = (uint64_t)own_tid();
    clock->thread_state = python.save_thread();
    arrive();
    clock->began_ns = now_ns();
    timed_take(clock);
    sample(times);
}

void gilclock_leave(struct thread_clock *clock, struct cpu_times *times)
{
    sample(times);
    timed_drop(clock);
    depart(clock);
}

static void cycles(struct thread_clock *clock, uint64_t hold_ns, uint64_t release_ns, uint64_t ns)
{
    uint64_t deadline_ns = clock->began_ns + ns;
    for (;;) {
        busy_until(now_ns() + hold_ns);
        timed_drop(clock);
        sleep_for(release_ns);
        if (now_ns() >= deadline_ns)
            return;
        timed_take(clock);
    }
}

/* Holds and releases in turn for *ns*, wholly in C, so that the evaluation loop never yields. */
void gilclock_run(struct thread_clock *clock, uint64_t hold_ns, uint64_t release_ns, uint64_t ns)
{
    clock->tid = (uint64_t)own_tid();
    clock->thread_state = python.save_thread();
    arrive();
    clock->began_ns = now_ns();
    timed_take(clock);
    cycles(clock, hold_ns, release_ns, ns);
    depart(clock);
}

struct native_job {
    struct thread_clock *clock;
    uint64_t hold_ns, release_ns, ns;
};

static void *native_main(void *argument)
{
    struct native_job *job = argument;
    struct thread_clock *clock = job->clock;
    clock->tid = (uint64_t)own_tid();
    arrive();
    clock->began_ns = now_ns();
    timed_ensure(clock);
    cycles(clock, job->hold_ns, job->release_ns, job->ns);
    depart(clock);
}

/* The same by a thread that Python did not start and that runs no Python code. */
int gilclock_run_native(struct thread_clock *clock, uint64_t hold_ns, uint64_t release_ns,
                        uint64_t ns)
{
    static struct native_job jobs[16];
    static unsigned int used;
    pthread_t thread;
    if (used == sizeof(jobs) / sizeof(jobs[0]))
        return EAGAIN;
    jobs[used] = (struct native_job){clock, hold_ns, release_ns, ns};
    return pthread_create(&thread, NULL, native_main, &jobs[used++]);
}

/* Single steps, for tests that want to compose their own course of events. */
void gilclock_hold(uint64_t ns)
{
    busy_until(now_ns() + ns);
}

void gilclock_release_for(struct thread_clock *clock, uint64_t ns, int is_busy)
{
    timed_drop(clock);
    if (is_busy)
        busy_until(now_ns() + ns);
    else
        sleep_for(ns);
    timed_take(clock);
}

/* n releases and takes with nothing in between; returns the time they took. */
uint64_t gilclock_tight(uint64_t n)
{
    uint64_t before_ns = now_ns();
    while (n-- > 0)
        python.restore_thread(python.save_thread());
    return now_ns() - before_ns;
}
