// Adds up what the records of one log mean: time in transactions by how they ended, and conflicts.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "entries.h"
#include "events.h"
#include "layout.h"
#include "series.h"
#include "threads.h"

// As gilscope.model.histogram has them.
#define STM_OCTAVE_BITS 3
#define STM_SLOTS 257
#define STM_STEP_BITS 31
#define STM_STEPS \
    {2341847523, 2553802833, 2784941737, 3037000499, 3311872529, 3611622602, 3938502375}

// Which rules to charge by.
enum stm_rules {
    // The original tool's own, with what it loses: the semantics of the account.
    STM_ORIGINAL,
    // The same questions, answered for all of the time that the log knows of.
    STM_CORRECTED,
};

struct stm_totals {
    // Of transactions that have ended. In S0 and S1 both are in cpu_ns and nowhere else.
    uint64_t committed_ns;
    uint64_t aborted_ns;
    uint64_t paused_ns;
    uint64_t cpu_ns;
    uint64_t commits;
    uint64_t aborts;
    uint64_t minor_gc_ns;
    uint64_t major_gc_ns;
    // What only the corrected rules know.
    uint64_t detached_ns;
    uint64_t paused_outside_ns;
    uint64_t unfinished_ns;
    // Aborted, and the log does not say because of what.
    uint64_t unexplained_ns;
    uint64_t unexplained;
    // The part of *unfinished_ns* of transactions that must have been committed, by another thread.
    uint64_t unlogged_commit_ns;
    uint64_t unlogged_commits;
    // All waits by their events, also those of transactions that have not ended.
    uint64_t wait_ns[STM_EVENTS];
    uint64_t waits[STM_EVENTS];
    // Run time of transactions: each power of two is divided into slots of the same width; the last
    // one counts whatever is longer.
    uint64_t committed_slots[STM_SLOTS];
    uint64_t aborted_slots[STM_SLOTS];
};

struct stm_account {
    const struct stm_table *table;
    enum stm_semantics semantics;
    enum stm_rules rules;
    struct stm_threads threads;
    struct stm_entries entries;
    struct stm_scale scale;
    struct stm_series commits;
    struct stm_series aborts;
    struct stm_totals totals;
    uint64_t first_ns;
    uint64_t last_ns;
    bool has_records;
    // Memory was not enough, so that the figures are not complete.
    bool has_failed;
};

void stm_account_init(struct stm_account *account, enum stm_rules rules,
                      enum stm_semantics semantics, const struct stm_scale *scale, uint32_t *room,
                      uint64_t secret);
void stm_account_free(struct stm_account *account);

// Says that nothing follows: what is known of single threads goes into the totals and is forgotten.
void stm_account_close(struct stm_account *account);

// Adds one record, whose number the account's table explains.
void stm_account_add(struct stm_account *account, const struct stm_record *record);

// Returns the time in transactions that were open when their threads were last heard of.
uint64_t stm_account_unfinished_ns(const struct stm_account *account);

// What the rules are made of.

// One record, and the thread that it is of.
struct stm_step {
    const struct stm_record *record;
    struct stm_thread *thread;
    uint64_t now_ns;
    enum stm_event event;
    // The log has nothing older of this thread.
    bool is_first;
};

void stm_add_early(struct stm_account *account, const struct stm_step *step);
void stm_add_late(struct stm_account *account, const struct stm_step *step);
void stm_add_corrected(struct stm_account *account, const struct stm_step *step);

// Returns how long it was from *since_ns* to *now_ns*; 0 where the clock went backwards.
static inline uint64_t stm_elapsed(uint64_t since_ns, uint64_t now_ns)
{
    return now_ns > since_ns ? now_ns - since_ns : 0;
}

// Counts a conflict at *time_ns* and returns its entry, or NULL if there is no memory.
struct stm_entry *stm_count_conflict(struct stm_account *account, const struct stm_key *key,
                                     uint64_t time_ns, uint32_t *number);

// Returns the key of the record's event with both of its markers.
struct stm_key stm_key_of(const struct stm_step *step);

// Remembers the first try of a transaction to become inevitable.
void stm_keep(const struct stm_step *step);

// Counts a wait that ends for another thread which the kept record has tried to follow, and returns
// its entry, or NULL if no record is kept or there is no memory.
struct stm_entry *stm_count_kept(struct stm_account *account, const struct stm_thread *thread);

// Adds up the time from the beginnings of collections to their ends.
void stm_add_gc(struct stm_account *account, const struct stm_step *step);
