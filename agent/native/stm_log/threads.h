// What is known of each thread, for as long as it has something to be remembered.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define STM_NEVER UINT64_MAX
// Of those that are kept, as long as any may be.
#define STM_LONGEST_KEPT_MARKER 160
// Thread numbers are below 2^24; a page of the set of those that were seen covers so many of them.
#define STM_THREADS_PER_PAGE 32768
#define STM_THREAD_PAGES 513

enum stm_thread_state {
    // Not in a transaction: what a thread is before its first record.
    STM_OUTSIDE,
    STM_RUNNING,
    STM_PAUSED,
    STM_DETACHED,
    // Stands still and is in no transaction.
    STM_PAUSED_OUTSIDE,
};

struct stm_thread {
    // What nearly every record needs is in the first two lines of the cache.
    _Alignas(64) uint32_t number;
    bool is_used;
    uint8_t state;
    bool is_in_transaction;
    // Its contention record was in this transaction, and it was this thread that wrote it.
    bool is_conflict_local;
    bool is_aborting;
    bool waits_for_segment;
    // The last wait, where the thread is paused.
    uint8_t wait_event;
    // The first try of this transaction to become inevitable; STM_EVENTS: none yet.
    uint8_t kept_event;
    uint8_t kept_length;
    // An entry, or STM_NO_ENTRY.
    uint32_t conflict;
    uint32_t conflict_thread;
    // When the state began.
    uint64_t since_ns;
    uint64_t start_ns;
    uint64_t run_ns;
    uint64_t pause_ns;
    // The part of *pause_ns* that an entry has been charged with already.
    uint64_t charged_ns;
    // STM_NEVER where nothing is in flight.
    uint64_t pause_start_ns;
    uint64_t minor_gc_ns;
    uint64_t major_gc_ns;
    uint64_t kept_ns;
    // For how long it has not been heard of, in records of the log.
    uint64_t last_record;
    uint8_t kept_marker[STM_LONGEST_KEPT_MARKER];
};

struct stm_threads {
    struct stm_thread *slots;
    // The one asked for last, which is the likeliest to be asked for next.
    struct stm_thread *latest;
    uint32_t slot_count;
    uint32_t used;
    uint64_t records;
    // How many different numbers there were.
    uint64_t seen;
    // What slots depend on.
    uint64_t secret;
    uint32_t *pages[STM_THREAD_PAGES];
};

// Forgets all threads, but not how many there were. Then it can only be done again.
void stm_threads_free(struct stm_threads *threads);

// Returns the thread *number*, with *is_first* where the log has never had it, or NULL if there is
// no memory. It is good until the next call.
struct stm_thread *stm_threads_get(struct stm_threads *threads, uint32_t number, bool *is_first);

// Returns the thread *number*, or NULL where nothing is remembered of it.
struct stm_thread *stm_threads_find(const struct stm_threads *threads, uint32_t number);
