// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The steps that programs take on those records: counted traps, begins, commits, aborts.

static __always_inline int is_inside(const struct target *target, const struct totals *total,
                                     u64 now)
{
    return now >= target->from_ns && now < target->until_ns && total->ended_ns < target->from_ns;
}

// Counts a trap of *program*. Returns what is counted of the process, or 0 where nothing is to be
// counted now: no window is open, or it runs another program by now.
static __always_inline struct totals *trapped(const struct target *target, u32 tgid, u64 now,
                                              u32 program)
{
    struct totals *total = target ? totals.lookup(&tgid) : 0;

    if (!total)
        return 0;
    int is_stepped = target->stepped_programs >> program & 1;

    __sync_fetch_and_add(&total->traps, 1);
    __sync_fetch_and_add(&total->cost_ns, is_stepped ? target->stepped_trap_ns : target->trap_ns);
    if (!is_inside(target, total, now))
        return 0;
    if (total->cost_ns >= target->stop_at_cost_ns) {
        struct notice notice = {.tgid = tgid};

        total->ended_ns = now;
        // Nothing is missed where there is no room: user space reads again within seconds anyway.
        notices.ringbuf_output(&notice, sizeof(notice), BPF_RB_FORCE_WAKEUP);
        return 0;
    }
    return total;
}

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
