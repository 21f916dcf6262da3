#define _POSIX_C_SOURCE 200809L

#include "sampler.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// struct _gil_runtime_state around its condition variable, the same since CPython 3.7.
#define LOCKED_BEFORE_COND 16

#define NS_PER_S 1000000000
#define SHORTEST_MEAN_GAP_NS 10e6
#define LONGEST_MEAN_GAP_NS 100e6
// Part of the share that is planned to be used: the next wake-up may cost more than the last ones.
#define AIM 0.9
// Wake-ups over which their cost is averaged, about.
#define SMOOTHING 32

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

bool held_sampler_init(struct held_sampler *sampler, uint64_t seed, double cpu_share,
                       double enough_looks)
{
    pthread_condattr_t clock;

    *sampler = (struct held_sampler){
        .random = seed,
        .cpu_share = cpu_share,
        .enough_looks = enough_looks,
    };
    if (pthread_mutex_init(&sampler->mutex, NULL))
        return false;
    if (pthread_condattr_init(&clock) || pthread_condattr_setclock(&clock, CLOCK_MONOTONIC))
        return false;
    return !pthread_cond_init(&sampler->changed, &clock);
}

void held_sampler_free(struct held_sampler *sampler)
{
    free(sampler->locks);
    sampler->locks = NULL;
}

struct held_lock *held_sampler_find(struct held_sampler *sampler, int pid, uint64_t cond)
{
    for (size_t at = 0; at < sampler->count; at++) {
        struct held_lock *lock = &sampler->locks[at];
        if (lock->pid == pid && lock->cond == cond)
            return lock;
    }
    return NULL;
}

static int64_t observed_ns(const struct held_lock *lock, int64_t at_ns)
{
    const struct held_coverage *coverage = &lock->coverage;
    bool is_inside = (uint64_t)at_ns > coverage->open_since_ns;

    return coverage->covered_ns + (is_inside ? at_ns - (int64_t)coverage->open_since_ns : 0);
}

bool held_sampler_add(struct held_sampler *sampler, const struct held_lock *lock, int64_t at_ns)
{
    if (held_sampler_find(sampler, lock->pid, lock->cond))
        return true;
    if (sampler->count == sampler->room) {
        size_t room = sampler->room ? 2 * sampler->room : 8;
        struct held_lock *locks = realloc(sampler->locks, room * sizeof(*locks));
        if (!locks)
            return false;
        sampler->locks = locks;
        sampler->room = room;
    }
    struct held_lock *added = &sampler->locks[sampler->count++];
    *added = *lock;
    held_estimate_begin(&added->estimate, at_ns, observed_ns(added, at_ns));
    // Without locks the thread sleeps until there is one; with some it wakes by itself.
    if (sampler->count == 1)
        pthread_cond_signal(&sampler->changed);
    return true;
}

void held_sampler_cover(struct held_sampler *sampler, int pid, struct held_coverage coverage)
{
    for (size_t at = 0; at < sampler->count; at++)
        if (sampler->locks[at].pid == pid)
            sampler->locks[at].coverage = coverage;
}

void held_sampler_drop(struct held_sampler *sampler, int pid)
{
    size_t kept = 0;

    for (size_t at = 0; at < sampler->count; at++)
        if (sampler->locks[at].pid != pid)
            sampler->locks[kept++] = sampler->locks[at];
    sampler->count = kept;
}

static void look(struct held_lock *lock, int64_t at_ns)
{
    int32_t locked;

    lock->is_covered = !held_estimate_wants_look(&lock->estimate, at_ns, observed_ns(lock, at_ns));
    if (lock->is_covered)
        return;
    off_t address = (off_t)(lock->cond - LOCKED_BEFORE_COND);
    if (pread(lock->memory, &locked, sizeof(locked), address) != sizeof(locked))
        return; // the process has ended, or runs another program now
    held_estimate_credit(&lock->estimate, at_ns, locked == 1);
}

void held_sampler_look(struct held_sampler *sampler, int pid, int64_t at_ns)
{
    for (size_t at = 0; at < sampler->count; at++)
        if (sampler->locks[at].pid == pid)
            look(&sampler->locks[at], at_ns);
}

// splitmix64, whose low bits are as good as its high ones.
static uint64_t draw(struct held_sampler *sampler)
{
    uint64_t bits = sampler->random += 0x9e3779b97f4a7c15;

    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
}

static double larger(double one, double other)
{
    return one > other ? one : other;
}

static double bounded_gap_ns(double gap_ns)
{
    return gap_ns > LONGEST_MEAN_GAP_NS ? LONGEST_MEAN_GAP_NS
                                        : larger(gap_ns, SHORTEST_MEAN_GAP_NS);
}

double held_mean_gap_ns(double cost_ns, double cpu_share)
{
    return bounded_gap_ns(cost_ns / (cpu_share * AIM));
}

double held_sampler_mean_gap_ns(const struct held_sampler *sampler)
{
    double variance = 0;

    for (size_t at = 0; at < sampler->count; at++) {
        const struct held_lock *lock = &sampler->locks[at];
        double share = lock->estimate.share;
        if (!lock->is_covered)
            variance = larger(variance, share * (1 - share));
    }
    double enough_gap_ns = NS_PER_S / (sampler->enough_looks * larger(variance, 1e-9));
    return larger(held_mean_gap_ns(sampler->cost_ns, sampler->cpu_share),
                  bounded_gap_ns(enough_gap_ns));
}

int64_t held_sampler_next_gap_ns(struct held_sampler *sampler)
{
    double part = (double)(draw(sampler) >> 11) / (double)(UINT64_C(1) << 53);

    return (int64_t)((0.5 + part) * held_sampler_mean_gap_ns(sampler));
}

static void pay(struct held_sampler *sampler)
{
    int64_t cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
    double cost_ns = (double)(cpu_ns - sampler->cpu_ns);

    sampler->cpu_ns = cpu_ns;
    // The first one, with the start of the thread in it, is the dearest.
    sampler->cost_ns += (cost_ns - sampler->cost_ns) / (sampler->cost_ns > 0 ? SMOOTHING : 1);
}

static void sleep_until(struct held_sampler *sampler, int64_t until_ns)
{
    struct timespec until = {
        .tv_sec = until_ns / NS_PER_S,
        .tv_nsec = until_ns % NS_PER_S,
    };
    int result = 0;

    while (!result && !sampler->is_closed)
        result = pthread_cond_timedwait(&sampler->changed, &sampler->mutex, &until);
}

void held_sampler_run(struct held_sampler *sampler)
{
    pthread_mutex_lock(&sampler->mutex);
    while (!sampler->is_closed) {
        if (!sampler->count) {
            pthread_cond_wait(&sampler->changed, &sampler->mutex);
            continue;
        }
        // One time for all: the few microseconds between them are the same at every look.
        int64_t at_ns = read_clock(CLOCK_MONOTONIC);
        for (size_t at = 0; at < sampler->count; at++)
            look(&sampler->locks[at], at_ns);
        pay(sampler);
        sleep_until(sampler, at_ns + held_sampler_next_gap_ns(sampler));
    }
    pthread_mutex_unlock(&sampler->mutex);
}

void held_sampler_close(struct held_sampler *sampler)
{
    pthread_mutex_lock(&sampler->mutex);
    sampler->is_closed = true;
    pthread_cond_broadcast(&sampler->changed);
    pthread_mutex_unlock(&sampler->mutex);
}
