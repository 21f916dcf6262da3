// Samples the locks of other processes at random times, in a thread that needs no interpreter.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "estimate.h"
#include "remote_memory/remote.h"

// What windows have covered of a process: by those that are over, and since when one is open.
struct held_coverage {
    int64_t covered_ns;
    // UINT64_MAX: none is.
    uint64_t open_since_ns;
};

// The memory of a process, with a descriptor of its own: it is read while nothing is guarded.
struct held_memory {
    struct remote remote;
    // Locks and samples that have it.
    int users;
    // By the locks: only a sample that is being made may have it still.
    bool is_dropped;
};

// Where a lock says whether it is held, from its address, and how.
struct held_word {
    long offset;
    // Bytes, up to those of `value`.
    size_t size;
    uint64_t value;
    // It is held if the word has this value; otherwise if it has any other one.
    bool is_held_if_equal;
};

struct held_lock {
    int pid;
    struct held_memory *memory;
    // Of the condition variable beside it.
    uint64_t cond;
    struct held_word word;
    struct held_coverage coverage;
    struct held_estimate estimate;
    // Whether windows have left nothing to be decided by the last sample, which was left out then.
    bool is_covered;
};

// A read that is wanted: of which lock, and what has come of it.
struct held_read {
    int pid;
    uint64_t cond;
    size_t at; // among the locks, when the read began
    struct held_memory *memory;
    struct held_word word;
    bool is_done;
    uint64_t found;
};

struct lock_sampler {
    // Guards all the rest. It is not held while memory is read, which may take for ever.
    pthread_mutex_t mutex;
    // Signalled when there is something to sample after all, and at the end.
    pthread_cond_t changed;
    bool is_closed;
    // In no order: all are sampled each time, and whoever asks for one asks seldom.
    struct held_lock *locks;
    size_t count;
    size_t room;
    uint64_t random;
    // Of a GIL beside its condition variable.
    struct held_word word;
    // Of one core.
    double cpu_share;
    // So many samples a second are enough for each unit of share (1 - share), the variance of a
    // sample; infinity: never enough.
    double enough_samples;
    // Of a wake-up, in CPU time, smoothed.
    double cost_ns;
    // What the thread has used.
    int64_t cpu_ns;
    // What the thread reads just now, NULL: nothing; it is there for as long as the mutex is held.
    // And how many reads have begun at all.
    struct held_memory *reading;
    uint64_t reads;
};

// False: there is no memory for it.
bool lock_sampler_init(struct lock_sampler *sampler, uint64_t seed, long locked_offset,
                       double cpu_share, double enough_samples);
void lock_sampler_free(struct lock_sampler *sampler);

// The functions below want the mutex to be held.

// NULL: it is not known.
struct held_lock *lock_sampler_find(struct lock_sampler *sampler, int pid, uint64_t cond);

// Begins with a lock at `cond` of the process that `remote` reads, whose descriptor is copied. One
// that is there already continues as it is. False: there is no memory, or no descriptor, for it.
bool lock_sampler_add(struct lock_sampler *sampler, const struct remote *remote, uint64_t cond,
                      struct held_word word, struct held_coverage coverage, int64_t at_ns);
void lock_sampler_cover(struct lock_sampler *sampler, int pid, struct held_coverage coverage);
void lock_sampler_drop(struct lock_sampler *sampler, int pid);

// Samples the locks of one process at `at_ns`, which is now. Releases the mutex while it reads.
void lock_sampler_sample(struct lock_sampler *sampler, int pid, int64_t at_ns);

// How far apart wake-ups are in the mean: as far as the CPU time wants that they take, or farther
// where that is enough for the lock that needs most samples, of those that need any.
double lock_sampler_mean_gap_ns(const struct lock_sampler *sampler);

// Draws how long to sleep: half to one and a half times the mean, all equally likely.
int64_t lock_sampler_next_gap_ns(struct lock_sampler *sampler);

// The functions below take the mutex themselves.

// Samples everything until `lock_sampler_close`.
void lock_sampler_run(struct lock_sampler *sampler);
void lock_sampler_close(struct lock_sampler *sampler);

// How far apart wake-ups are in the mean where each takes `cost_ns` of CPU time, for so many locks.
double held_mean_gap_ns(double cost_ns, double cpu_share, size_t locks);
