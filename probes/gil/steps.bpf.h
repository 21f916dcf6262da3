// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The steps that programs take on those records: counted traps, notices, quotas, the own thread.

// For what user space may write at any instant.
#define READ_ONCE_U64(field) (*(const volatile u64 *)&(field))
#define READ_ONCE_U32(field) (*(const volatile u32 *)&(field))

// From how long on a wait after a blocking call is a convoy wait where the lock has no switch
// interval: the usual one of CPython 3.
#define CONVOY_NS 5000000

static __always_inline struct settings *current_settings(void)
{
    u32 zero = 0;

    return settings.lookup(&zero);
}

// Whether all has been counted that will be. It holds for all programs at one instant, so that what
// user space reads afterwards agrees with itself; to take the probes out takes a while.
static __always_inline int has_stopped(void)
{
    struct settings *common = current_settings();

    return common && READ_ONCE_U32(common->stopped);
}

// The process of a trap, which is counted: what tracing costs is made of these. 0: nothing of it is
// to be counted, between an exec and its notice or at the end.
static __always_inline struct target *trapped(u32 tgid)
{
    struct target *target = has_stopped() ? 0 : targets.lookup(&tgid);

    if (target)
        __sync_fetch_and_add(&target->traps, 1);
    return target;
}

// Most notices can wait until the agent's next iteration; on a host that starts many programs it
// would have no rest otherwise.
static __always_inline void give_notice(u32 kind, u32 tgid, u32 tid)
{
    struct notice notice = {.kind = kind, .tgid = tgid, .tid = tid};
    u64 flags = kind >= NOTICE_LOCK ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;

    if (notices.ringbuf_output(&notice, sizeof(notice), flags))
        lose(tgid, LOST_NOTICE);
}

// Whether the process may have another entry. Asked where one is about to be made, which is rare.
static __always_inline int is_within_quota(u32 tgid, u32 quota, u32 most)
{
    struct target *target = targets.lookup(&tgid);

    if (!target)
        return 1; // it runs another program by now: what was in flight is counted to its end
    u32 slot = target->slot;
    struct returned *given_back = returned.lookup(&slot);

    // User space may have given back what an earlier program of this process had.
    return !given_back || (s32)(target->used[quota] - given_back->entries[quota]) < (s32)most;
}

// To be told only of an entry that was made here, not of one that another thread has just made.
static __always_inline void use_quota(u32 tgid, u32 quota, s32 entries)
{
    struct target *target = targets.lookup(&tgid);

    if (target)
        __sync_fetch_and_add(&target->used[quota], entries);
}

static __always_inline void observe(const struct gil_key *gil, u32 quantity, u64 ns)
{
    struct histogram_key key = {.cond = gil->cond, .tgid = gil->tgid, .quantity = quantity};
    struct histogram *histogram = histograms.lookup(&key);

    if (!histogram) {
        u32 zero = 0;
        struct histogram *empty = empty_histogram.lookup(&zero);

        if (empty)
            histogram = histograms.lookup_or_try_init(&key, empty);
        if (!histogram) {
            lose(gil->tgid, LOST_TABLE_FULL);
            return;
        }
    }
    count_ns(&histogram->sum_ns, histogram->slots, ns);
}

// What stands between these two may be copied by user space at any instant; the barriers keep the
// compiler from moving a store out.
#define BEGIN_CHANGE(record) \
    do { \
        (record)->version_begin++; \
        asm volatile("" ::: "memory"); \
    } while (0)

#define END_CHANGE(record) \
    do { \
        asm volatile("" ::: "memory"); \
        (record)->version_end = (record)->version_begin; \
    } while (0)

// A thread's record was taken away here.
static __always_inline void thread_left(u32 tgid)
{
    use_quota(tgid, QUOTA_THREADS, -1);
}

#include "common/thread_record.bpf.h"

static __always_inline struct thread *current_thread(u32 tgid, u32 tid)
{
    struct thread *thread = known_thread(tgid, tid);

    if (!thread) {
        u32 zero = 0;
        struct thread *empty = empty_thread.lookup(&zero);

        if (!empty)
            return 0;
        if (!is_within_quota(tgid, QUOTA_THREADS, PARAMETER(MAX_THREADS_OF_PROCESS))) {
            lose(tgid, LOST_QUOTA);
            return 0;
        }
        if (!threads.insert(&tid, empty))
            use_quota(tgid, QUOTA_THREADS, 1);
        thread = threads.lookup(&tid);
        if (!thread) {
            lose(tgid, LOST_TABLE_FULL);
            return 0;
        }
        // Until then it is nobody's to user space.
        thread->cause = AFTER_UNKNOWN;
        thread->tgid = tgid;
        give_notice(NOTICE_THREAD, tgid, tid);
    }
    return thread;
}
