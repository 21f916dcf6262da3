// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The steps that programs take on those records: counted traps, begins, commits, aborts.

static __always_inline struct transaction *transaction_of(const struct target *target, u32 tgid,
                                                          u64 thread)
{
    struct transaction_key key = {.thread = thread, .tgid = tgid};
    struct transaction fresh = {.window_ns = target->from_ns};
    struct transaction *found = transactions.lookup(&key);

    if (!found)
        found = transactions.lookup_or_try_init(&key, &fresh);
    else if (found->window_ns != target->from_ns)
        *found = fresh; // what it has done since the last window was not seen
    if (!found)
        lose(tgid, LOST_TABLE_FULL);
    return found;
}

static __always_inline void thread_left(u32 tgid)
{
}

#include "common/thread_record.bpf.h"

static __always_inline struct thread *current_thread(u32 tgid, u32 tid)
{
    struct thread *thread = known_thread(tgid, tid);

    if (!thread) {
        struct thread fresh = {.tgid = tgid};

        bpf_get_current_comm(&fresh.name, sizeof(fresh.name));
        thread = threads.lookup_or_try_init(&tid, &fresh);
        if (!thread)
            lose(tgid, LOST_TABLE_FULL);
    }
    return thread;
}

static __always_inline void begin(struct transaction *transaction, u64 now)
{
    transaction->began_ns = now;
    transaction->tried_ns = now;
    transaction->waited_ns = 0;
    transaction->detached_since_ns = 0;
    transaction->detached_ns = 0;
    transaction->committed_ns = 0;
}

static __always_inline void commit(struct totals *total, u32 tgid, u32 tid, int is_timed, u64 ns)
{
    struct thread *thread = current_thread(tgid, tid);

    __sync_fetch_and_add(&total->commits, 1);
    if (thread)
        thread->commits++;
    if (!is_timed)
        return;
    count_ns(&total->committed_ns, total->committed_slots, ns);
    if (thread)
        thread->committed_ns += ns;
}

static __always_inline struct thread *count_abort(struct totals *total, u32 tgid, u32 tid)
{
    struct thread *thread = current_thread(tgid, tid);

    __sync_fetch_and_add(&total->aborts, 1);
    if (thread)
        thread->aborts++;
    return thread;
}

static __always_inline void abort(struct totals *total, u32 tgid, u32 tid, int is_timed, u64 ns)
{
    struct thread *thread = count_abort(total, tgid, tid);

    if (!is_timed) {
        lose(tgid, LOST_BEGAN_UNSEEN);
        return;
    }
    count_ns(&total->aborted_ns, total->aborted_slots, ns);
    if (thread)
        thread->aborted_ns += ns;
}

// How often a thread made its transaction one that cannot be aborted any more.
static __always_inline void count_reason(struct totals *total, struct reason_key *key)
{
    u64 zero = 0;
    u64 *count = reasons.lookup(key);

    if (!count && total->names < PARAMETER(MAX_REASONS_OF_PROCESS)) {
        __sync_fetch_and_add(&total->names, 1);
        count = reasons.lookup_or_try_init(key, &zero);
    }
    __sync_fetch_and_add(count ? count : &total->unnamed, 1);
}
