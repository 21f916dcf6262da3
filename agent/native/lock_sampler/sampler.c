#define _POSIX_C_SOURCE 200809L

#include "sampler.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// struct _gil_runtime_state around its condition variable, the same since CPython 3.7.

#define NS_PER_S 1000000000
#define SHORTEST_MEAN_GAP_NS 10e6
#define LONGEST_MEAN_GAP_NS 100e6
// Where locks are many, for the sum over them is what matters then. Twice as long without a sample
// would seem to be a stopped agent.
#define LONGEST_MEAN_GAP_OF_MANY_NS 1000e6
// From here on the longest gap grows with their number.
#define FEW_LOCKS 20
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

bool lock_sampler_init(struct lock_sampler *sampler, uint64_t seed, long locked_offset,
                       double cpu_share, double enough_samples)
{
    pthread_condattr_t clock;

    *sampler = (struct lock_sampler){
        .random = seed,
        .word = {.offset = locked_offset, .size = 4, .value = 1, .is_held_if_equal = true},
        .cpu_share = cpu_share,
        .enough_samples = enough_samples,
    };
    if (pthread_mutex_init(&sampler->mutex, NULL))
        return false;
    if (pthread_condattr_init(&clock) || pthread_condattr_setclock(&clock, CLOCK_MONOTONIC))
        return false;
    return !pthread_cond_init(&sampler->changed, &clock);
}

static void let_go(struct held_memory *memory)
{
    if (--memory->users)
        return;
    close(memory->remote.memory);
    free(memory);
}

void lock_sampler_free(struct lock_sampler *sampler)
{
    for (size_t at = 0; at < sampler->count; at++)
        let_go(sampler->locks[at].memory);
    free(sampler->locks);
    sampler->locks = NULL;
    sampler->count = 0;
}

struct held_lock *lock_sampler_find(struct lock_sampler *sampler, int pid, uint64_t cond)
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

static struct held_memory *memory_of(struct lock_sampler *sampler, const struct remote *remote)
{
    for (size_t at = 0; at < sampler->count; at++)
        if (sampler->locks[at].pid == remote->pid)
            return sampler->locks[at].memory;
    struct held_memory *memory = malloc(sizeof(*memory));
    if (!memory)
        return NULL;
    *memory = (struct held_memory){.remote = *remote};
    memory->remote.memory = fcntl(remote->memory, F_DUPFD_CLOEXEC, 0);
    if (memory->remote.memory < 0) {
        free(memory);
        return NULL;
    }
    return memory;
}

bool lock_sampler_add(struct lock_sampler *sampler, const struct remote *remote, uint64_t cond,
                      struct held_word word, struct held_coverage coverage, int64_t at_ns)
{
    if (lock_sampler_find(sampler, remote->pid, cond))
        return true;
    if (sampler->count == sampler->room) {
        size_t room = sampler->room ? 2 * sampler->room : 8;
        struct held_lock *locks = realloc(sampler->locks, room * sizeof(*locks));
        if (!locks)
            return false;
        sampler->locks = locks;
        sampler->room = room;
    }
    struct held_memory *memory = memory_of(sampler, remote);
    if (!memory)
        return false;
    memory->users++;
    struct held_lock *added = &sampler->locks[sampler->count++];
    *added = (struct held_lock){
        .pid = remote->pid,
        .memory = memory,
        .cond = cond,
        .word = word,
        .coverage = coverage,
    };
    held_estimate_begin(&added->estimate, at_ns, observed_ns(added, at_ns));
    // Without locks the thread sleeps until there is one; with some it wakes by itself.
    if (sampler->count == 1)
        pthread_cond_signal(&sampler->changed);
    return true;
}

void lock_sampler_cover(struct lock_sampler *sampler, int pid, struct held_coverage coverage)
{
    for (size_t at = 0; at < sampler->count; at++)
        if (sampler->locks[at].pid == pid)
            sampler->locks[at].coverage = coverage;
}

void lock_sampler_drop(struct lock_sampler *sampler, int pid)
{
    size_t kept = 0;

    for (size_t at = 0; at < sampler->count; at++)
        if (sampler->locks[at].pid != pid) {
            sampler->locks[kept++] = sampler->locks[at];
        } else {
            sampler->locks[at].memory->is_dropped = true;
            let_go(sampler->locks[at].memory);
        }
    sampler->count = kept;
}

// Returns the reads that are wanted at `at_ns`, of one process or, with 0, of all, in `count`.
static struct held_read *wanted_reads(struct lock_sampler *sampler, int pid, int64_t at_ns,
                                      size_t *count)
{
    struct held_read *reads = sampler->count ? calloc(sampler->count, sizeof(*reads)) : NULL;

    *count = 0;
    for (size_t at = 0; reads && at < sampler->count; at++) {
        struct held_lock *lock = &sampler->locks[at];
        if (pid && lock->pid != pid)
            continue;
        lock->is_covered =
            !held_estimate_wants_sample(&lock->estimate, at_ns, observed_ns(lock, at_ns));
        if (lock->is_covered)
            continue;
        lock->memory->users++;
        reads[(*count)++] = (struct held_read){
            lock->pid, lock->cond, at, lock->memory, lock->word, false, 0,
        };
    }
    return reads;
}

// Returns the lock that was read; NULL: it has been dropped since.
static struct held_lock *lock_of(struct lock_sampler *sampler, const struct held_read *read)
{
    struct held_lock *lock = read->at < sampler->count ? &sampler->locks[read->at] : NULL;

    // Where none was dropped meanwhile it is where it was.
    if (lock && lock->pid == read->pid && lock->cond == read->cond)
        return lock;
    return lock_sampler_find(sampler, read->pid, read->cond);
}

static bool is_held(const struct held_read *read)
{
    return (read->found == read->word.value) == read->word.is_held_if_equal;
}

static void make(struct lock_sampler *sampler, struct held_read *read)
{
    uint64_t address = read->cond + read->word.offset;

    __atomic_add_fetch(&sampler->reads, 1, __ATOMIC_RELAXED);
    // Fails where the process has ended, or runs another program now. Another thread may read by
    // the same memory: what both may change is which thread of the process it is read through.
    struct remote remote = read->memory->remote;
    read->is_done = remote_read(&remote, address, &read->found, read->word.size) > 0;
    read->memory->remote.tid = remote.tid;
}

// Takes over what has been read, of the locks that are still there.
static void credit(struct lock_sampler *sampler, struct held_read *reads, size_t count,
                   int64_t at_ns)
{
    for (size_t at = 0; at < count; at++) {
        struct held_read *read = &reads[at];
        struct held_lock *lock = lock_of(sampler, read);
        // Meanwhile a later sample may have been credited, or a window have covered the time.
        if (read->is_done && lock && lock->memory == read->memory &&
            held_estimate_wants_sample(&lock->estimate, at_ns, observed_ns(lock, at_ns)))
            held_estimate_credit(&lock->estimate, at_ns, is_held(read));
        let_go(read->memory);
    }
    free(reads);
}

void lock_sampler_sample(struct lock_sampler *sampler, int pid, int64_t at_ns)
{
    size_t count;
    struct held_read *reads = wanted_reads(sampler, pid, at_ns, &count);

    pthread_mutex_unlock(&sampler->mutex);
    for (size_t at = 0; at < count; at++)
        make(sampler, &reads[at]);
    pthread_mutex_lock(&sampler->mutex);
    credit(sampler, reads, count, at_ns);
}

// As above for all processes, in the thread that does nothing else; says where it is.
static void look_at_all(struct lock_sampler *sampler, int64_t at_ns)
{
    size_t count;
    struct held_read *reads = wanted_reads(sampler, 0, at_ns, &count);

    pthread_mutex_unlock(&sampler->mutex);
    for (size_t at = 0; at < count; at++) {
        __atomic_store_n(&sampler->reading, reads[at].memory, __ATOMIC_RELEASE);
        make(sampler, &reads[at]);
    }
    __atomic_store_n(&sampler->reading, NULL, __ATOMIC_RELEASE);
    pthread_mutex_lock(&sampler->mutex);
    credit(sampler, reads, count, at_ns);
}

// splitmix64, whose low bits are as good as its high ones.
static uint64_t draw(struct lock_sampler *sampler)
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

static double bounded_gap_ns(double gap_ns, double longest_ns)
{
    return gap_ns > longest_ns ? longest_ns : larger(gap_ns, SHORTEST_MEAN_GAP_NS);
}

double held_mean_gap_ns(double cost_ns, double cpu_share, size_t locks)
{
    double longest_ns = LONGEST_MEAN_GAP_NS * larger(1, (double)locks / FEW_LOCKS);

    if (longest_ns > LONGEST_MEAN_GAP_OF_MANY_NS)
        longest_ns = LONGEST_MEAN_GAP_OF_MANY_NS;
    return bounded_gap_ns(cost_ns / (cpu_share * AIM), longest_ns);
}

double lock_sampler_mean_gap_ns(const struct lock_sampler *sampler)
{
    double variance = 0;

    for (size_t at = 0; at < sampler->count; at++) {
        const struct held_lock *lock = &sampler->locks[at];
        double share = lock->estimate.share;
        if (!lock->is_covered)
            variance = larger(variance, share * (1 - share));
    }
    double enough_gap_ns = NS_PER_S / (sampler->enough_samples * larger(variance, 1e-9));
    return larger(held_mean_gap_ns(sampler->cost_ns, sampler->cpu_share, sampler->count),
                  bounded_gap_ns(enough_gap_ns, LONGEST_MEAN_GAP_NS));
}

int64_t lock_sampler_next_gap_ns(struct lock_sampler *sampler)
{
    double part = (double)(draw(sampler) >> 11) / (double)(UINT64_C(1) << 53);

    return (int64_t)((0.5 + part) * lock_sampler_mean_gap_ns(sampler));
}

static void pay(struct lock_sampler *sampler)
{
    int64_t cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
    double cost_ns = (double)(cpu_ns - sampler->cpu_ns);

    sampler->cpu_ns = cpu_ns;
    // The first one, with the start of the thread in it, is the costliest.
    sampler->cost_ns += (cost_ns - sampler->cost_ns) / (sampler->cost_ns > 0 ? SMOOTHING : 1);
}

static void sleep_until(struct lock_sampler *sampler, int64_t until_ns)
{
    struct timespec until = {
        .tv_sec = until_ns / NS_PER_S,
        .tv_nsec = until_ns % NS_PER_S,
    };
    int result = 0;

    while (!result && !sampler->is_closed)
        result = pthread_cond_timedwait(&sampler->changed, &sampler->mutex, &until);
}

void lock_sampler_run(struct lock_sampler *sampler)
{
    pthread_mutex_lock(&sampler->mutex);
    while (!sampler->is_closed) {
        if (!sampler->count) {
            pthread_cond_wait(&sampler->changed, &sampler->mutex);
            continue;
        }
        // One time for all: the few microseconds between them are the same at every sample.
        int64_t at_ns = read_clock(CLOCK_MONOTONIC);
        look_at_all(sampler, at_ns);
        pay(sampler);
        sleep_until(sampler, at_ns + lock_sampler_next_gap_ns(sampler));
    }
    pthread_mutex_unlock(&sampler->mutex);
}

void lock_sampler_close(struct lock_sampler *sampler)
{
    pthread_mutex_lock(&sampler->mutex);
    sampler->is_closed = true;
    pthread_cond_broadcast(&sampler->changed);
    pthread_mutex_unlock(&sampler->mutex);
}
