// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What the probes of software transactions keep, and the steps they share.
//
// What is counted of a process is added to atomically. A transaction's record is changed by one
// thread at a time: by its own, or, where an RPython program has left it open outside, by the one
// that takes it over.
//
// A process is observed all the time, or in windows, which user space opens and ends. What happens
// outside of windows is not counted, and neither is what began or will end there: times of
// transactions, tries and waits are counted where both of their ends lie in the same window.

#if !defined(MAX_TARGETS) || !defined(MAX_THREADS) || !defined(MAX_REASONS) || \
    !defined(MAX_REASONS_OF_PROCESS) || !defined(TABLE_FLAGS) || !defined(NOTICE_PAGES)
#error "the sizes of the tables must be given"
#endif
#if !defined(LOST_READ_FAULT) || !defined(LOST_TABLE_FULL) || !defined(LOST_BEGAN_UNSEEN) || \
    !defined(LOST_ABANDONED) || !defined(LOST_THREAD_REUSED)
#error "the reasons LOST_* must be given"
#endif
#define MAX_LOSSES (8 * MAX_TARGETS)

#include "shared.bpf.h"

#define REASON_SIZE 64
#define NAME_SIZE 16
#define WAITS 4
#define RESTART_REASONS 16 // a power of two; libitm has 11
#define MAX_NESTING 8

// All of it is written by user space.
struct target {
    u32 knows_events; // all of enum event, not only the first three
    // Whether it is observed all the time. Then a transaction that had begun before the probes were
    // there counts without its time; of one that had begun before a window nothing counts.
    u32 is_whole;
    u32 stepped_programs; // bits: those whose traps the kernel has to single-step
    u32 padding;
    u64 trap_ns; // what a trap is taken to cost, and one that is single-stepped
    u64 stepped_trap_ns;
    u64 from_ns; // the window, CLOCK_MONOTONIC; it also tells one window from another
    u64 until_ns;
    u64 stop_at_cost_ns; // the window ends by itself at so much of `cost_ns`
};

struct totals {
    u64 traps;    // in windows and outside of them
    u64 cost_ns;  // of these, estimated
    u64 ended_ns; // when a window has last ended by itself
    u64 commits;
    u64 aborts;
    u64 cancels; // by the program's own wish
    u64 names;   // in `reasons`
    u64 unnamed; // of `reasons`, those that there was no room for
    u64 conflicts;
    u64 wait_ns[WAITS]; // finished waits, by kind
    u64 waits[WAITS];
    u64 restarts[RESTART_REASONS];
    u64 committed_ns;
    u64 committed_slots[HISTOGRAM_SLOTS];
    u64 aborted_ns;
    u64 aborted_slots[HISTOGRAM_SLOTS];
};

struct transaction_key {
    u64 thread; // its id, or the address of what the program knows it by
    u32 tgid;
    u32 padding;
};

struct transaction {
    u64 window_ns; // the window that all of this was seen in
    u64 began_ns;  // 0: there is none
    u64 tried_ns;  // when the try that is going on began
    u64 waiting_since_ns;
    u64 waited_ns; // since the try began
    u64 detached_since_ns;
    u64 detached_ns;
    u64 committed_ns; // libitm: 0, or when the commit began that is counted
    // libitm: where the nested transactions were begun, the outermost first.
    u64 stack_pointers[MAX_NESTING];
    u64 returns[MAX_NESTING];
    u32 depth;
    u32 wait; // the kind, with waiting_since_ns
};

struct thread {
    u64 commits;
    u64 committed_ns;
    u64 aborts;
    u64 aborted_ns;
    u64 exited_ns; // 0: alive
    u64 known_as;  // to an RPython program
    u32 tgid;
    u32 padding;
    u8 name[NAME_SIZE];
};

struct reason_key {
    u8 reason[REASON_SIZE];
    u32 tgid;
    u32 padding;
};

// Filled by user space, one entry a traced process; an exec takes the first of them away.
BPF_F_TABLE("hash", u32, struct target, targets, MAX_TARGETS, TABLE_FLAGS);
BPF_F_TABLE("hash", u32, struct totals, totals, MAX_TARGETS, TABLE_FLAGS);
BPF_F_TABLE("hash", struct transaction_key, struct transaction, transactions, MAX_THREADS,
            TABLE_FLAGS);
// One entry a thread that has ended a transaction, kept until user space has counted a dead one.
BPF_F_TABLE("hash", u32, struct thread, threads, MAX_THREADS, TABLE_FLAGS);
BPF_F_TABLE("hash", struct reason_key, u64, reasons, MAX_REASONS, TABLE_FLAGS);

// A process whose window has ended by itself, or which has a child with a copy of its memory.
struct notice {
    u32 tgid;
    u32 is_fork;
};

// struct notice
BPF_RINGBUF_OUTPUT(notices, NOTICE_PAGES);

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
        // Nothing is missed where there is no room: user space comes round within seconds anyway.
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

#include "thread.bpf.h"

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

static __always_inline void abort(struct totals *total, u32 tgid, u32 tid, int is_timed, u64 ns)
{
    struct thread *thread = current_thread(tgid, tid);

    __sync_fetch_and_add(&total->aborts, 1);
    if (thread)
        thread->aborts++;
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

    if (!count && total->names < MAX_REASONS_OF_PROCESS) {
        __sync_fetch_and_add(&total->names, 1);
        count = reasons.lookup_or_try_init(key, &zero);
    }
    __sync_fetch_and_add(count ? count : &total->unnamed, 1);
}
