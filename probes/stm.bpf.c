// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Software transactions, of RPython programs such as PyPy-STM, and of GCC's libitm.
//
// All of these are probes on the entries of functions. What begins a transaction returns a second
// time when the transaction is tried again, and what ends or aborts one may never return: a probe
// on a return would kill the program.
//
// What is counted of a process is added to atomically. A transaction's record is changed by one
// thread at a time: by its own, or, where an RPython program has left it open outside, by the one
// that takes it over.

#if !defined(MAX_TARGETS) || !defined(MAX_THREADS) || !defined(MAX_REASONS) || \
    !defined(MAX_REASONS_OF_PROCESS) || !defined(TABLE_FLAGS)
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
#define LEAST_ADDRESS 4096 // what is less is no string: 1 says "do not sleep"

// Of the _ITM_transactionProperties and the _ITM_abortReason of the ABI.
#define ITM_GOES_IRREVOCABLE 0x40
#define ITM_OUTER_ABORT 0x10

// Events of an RPython program. The first three have the same numbers in all of its versions, the
// others are those of November 2015 and later.
enum event {
    EVENT_START,
    EVENT_COMMIT,
    EVENT_ABORT,
    EVENT_DETACH,
    EVENT_REATTACH,
    EVENT_BECOME_INEVITABLE,
    EVENT_WRITE_READ,
    EVENT_WAIT_FREE_SEGMENT,
    EVENT_WAIT_SYNCING,
    EVENT_WAIT_SYNC_PAUSE,
    EVENT_WAIT_OTHER_INEVITABLE,
    EVENT_WAIT_DONE,
    EVENT_GC_MINOR_START,
};

struct target {
    u32 knows_events; // all of enum event, not only the first three
    u32 padding;
};

struct totals {
    u64 traps;
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
    u64 began_ns; // 0: there is none
    u64 tried_ns; // when the try that is going on began
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

// What is counted of the process, or 0 where it runs another program by now.
static __always_inline struct totals *trapped(u32 tgid)
{
    struct totals *total = targets.lookup(&tgid) ? totals.lookup(&tgid) : 0;

    if (total)
        __sync_fetch_and_add(&total->traps, 1);
    return total;
}

static __always_inline struct transaction *transaction_of(u32 tgid, u64 thread)
{
    struct transaction_key key = {.thread = thread, .tgid = tgid};
    struct transaction fresh = {};
    struct transaction *found = transactions.lookup(&key);

    if (!found)
        found = transactions.lookup_or_try_init(&key, &fresh);
    if (!found)
        lose(tgid, LOST_TABLE_FULL);
    return found;
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

// So that what is noted of its transactions can go when it ends.
static __always_inline void know_thread(u32 tgid, u32 tid, u64 address)
{
    struct thread *thread = current_thread(tgid, tid);

    if (thread)
        thread->known_as = address;
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

static __always_inline void end_wait(struct totals *total, struct transaction *transaction, u64 now)
{
    u32 kind = transaction->wait & (WAITS - 1);
    u64 ns = now - transaction->waiting_since_ns;

    if (!transaction->waiting_since_ns)
        return;
    transaction->waiting_since_ns = 0;
    transaction->waited_ns += ns;
    __sync_fetch_and_add(&total->wait_ns[kind], ns);
    __sync_fetch_and_add(&total->waits[kind], 1);
}

static __always_inline void reattach(struct transaction *transaction, u64 now)
{
    if (transaction->detached_since_ns)
        transaction->detached_ns += now - transaction->detached_since_ns;
    transaction->detached_since_ns = 0;
}

// Run time since *since_ns*: what a thread has waited or was outside is none.
static __always_inline u64 run_ns(const struct transaction *transaction, u64 since_ns, u64 now)
{
    u64 other_ns = transaction->waited_ns + transaction->detached_ns;
    u64 ns = now - since_ns;

    return ns > other_ns ? ns - other_ns : 0;
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

// _stm_profiling_event(thread, event, marker) of RPython, called while the log is on. What another
// thread does to a transaction that was left open comes with the thread that began it.
int on_event(struct pt_regs *ctx)
{
    u64 now = bpf_ktime_get_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    u32 event = PT_REGS_PARM2(ctx);
    struct totals *total = trapped(tgid);
    struct target *target = targets.lookup(&tgid);

    if (!total || !target || (event > EVENT_ABORT && !target->knows_events))
        return 0;
    struct transaction *transaction = transaction_of(tgid, PT_REGS_PARM1(ctx));

    if (!transaction)
        return 0;
    switch (event) {
    case EVENT_START:
        if (transaction->began_ns)
            lose(tgid, LOST_ABANDONED);
        end_wait(total, transaction, now);
        begin(transaction, now);
        know_thread(tgid, tid, PT_REGS_PARM1(ctx));
        break;
    case EVENT_COMMIT:
    case EVENT_ABORT: {
        u64 began_ns = transaction->began_ns;

        end_wait(total, transaction, now);
        reattach(transaction, now);
        u64 ns = run_ns(transaction, began_ns, now);

        transaction->began_ns = 0;
        if (event == EVENT_ABORT) {
            abort(total, tgid, tid, began_ns != 0, ns);
        } else {
            commit(total, tgid, tid, began_ns != 0, ns);
            if (!began_ns)
                lose(tgid, LOST_BEGAN_UNSEEN);
        }
        break;
    }
    case EVENT_DETACH:
        transaction->detached_since_ns = now;
        break;
    case EVENT_REATTACH:
    case EVENT_GC_MINOR_START: // it runs on without having said so
        reattach(transaction, now);
        break;
    case EVENT_WRITE_READ:
        __sync_fetch_and_add(&total->conflicts, 1);
        break;
    case EVENT_WAIT_FREE_SEGMENT:
    case EVENT_WAIT_SYNCING:
    case EVENT_WAIT_SYNC_PAUSE:
    case EVENT_WAIT_OTHER_INEVITABLE:
        end_wait(total, transaction, now);
        reattach(transaction, now);
        transaction->waiting_since_ns = now;
        transaction->wait = event - EVENT_WAIT_FREE_SEGMENT;
        break;
    case EVENT_WAIT_DONE:
        end_wait(total, transaction, now);
        break;
    }
    return 0;
}

// _stm_start_transaction: not entered again for another try, so there is one for each transaction
// that comes to its end.
int on_start(struct pt_regs *ctx)
{
    u64 now = bpf_ktime_get_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct totals *total = trapped(tgid);

    if (!total)
        return 0;
    struct transaction *transaction = transaction_of(tgid, tid);

    if (transaction)
        begin(transaction, now);
    commit(total, tgid, tid, 0, 0);
    return 0;
}

// stm_abort_transaction: what follows is the next try.
int on_abort(struct pt_regs *ctx)
{
    u64 now = bpf_ktime_get_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct totals *total = trapped(tgid);

    if (!total)
        return 0;
    struct transaction *transaction = transaction_of(tgid, tid);
    u64 tried_ns = transaction ? transaction->tried_ns : 0;

    abort(total, tgid, tid, tried_ns != 0, now - tried_ns);
    if (transaction)
        transaction->tried_ns = now;
    return 0;
}

// _stm_become_inevitable(reason)
int on_become_inevitable(struct pt_regs *ctx)
{
    struct reason_key key = {.tgid = current_ids() >> 32};
    u64 reason = PT_REGS_PARM1(ctx);
    struct totals *total = trapped(key.tgid);

    if (!total)
        return 0;
    if (reason < LEAST_ADDRESS)
        __builtin_memcpy(key.reason, "(none given)", 12);
    else if (bpf_probe_read_user_str(key.reason, sizeof(key.reason), (void *)reason) < 0) {
        lose(key.tgid, LOST_READ_FAULT);
        __builtin_memcpy(key.reason, "(unreadable)", 12);
    }
    count_reason(total, &key);
    return 0;
}

// How many transactions are open around one that is begun in this frame, to return to *address*.
// One that was begun at the same place, or in a frame that has been left, is not: it was given up
// by a restart, which begins the nested ones again and the outermost not.
static __always_inline u32 depth_around(const struct transaction *transaction, u64 stack_pointer,
                                        u64 address)
{
#pragma unroll
    for (u32 i = 0; i < MAX_NESTING; i++) {
        if (i >= transaction->depth)
            return transaction->depth;
        if (transaction->stack_pointers[i] < stack_pointer ||
            (transaction->stack_pointers[i] == stack_pointer && transaction->returns[i] == address))
            return i;
    }
    return transaction->depth;
}

// _ITM_beginTransaction(properties)
int on_itm_begin(struct pt_regs *ctx)
{
    u64 now = bpf_ktime_get_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    u64 stack_pointer = PT_REGS_SP(ctx), address = 0;
    struct totals *total = trapped(tgid);

    if (!total)
        return 0;
    struct transaction *transaction = transaction_of(tgid, tid);

    if (!transaction)
        return 0;
    if (bpf_probe_read_user(&address, sizeof(address), (void *)stack_pointer))
        lose(tgid, LOST_READ_FAULT);
    u32 depth = depth_around(transaction, stack_pointer, address);

    if (!depth) {
        if (transaction->depth)
            lose(tgid, LOST_ABANDONED);
        begin(transaction, now);
    }
    if (depth < MAX_NESTING) {
        transaction->stack_pointers[depth & (MAX_NESTING - 1)] = stack_pointer;
        transaction->returns[depth & (MAX_NESTING - 1)] = address;
    }
    transaction->depth = depth + 1;
    if (PT_REGS_PARM1(ctx) & ITM_GOES_IRREVOCABLE) {
        struct reason_key key = {.reason = "begin", .tgid = tgid};

        count_reason(total, &key);
    }
    return 0;
}

// _ITM_commitTransaction, and its sibling for a block that an exception leaves. One that fails
// tries the transaction again and is entered again, without another begin: that counts as one
// commit.
int on_itm_commit(struct pt_regs *ctx)
{
    u64 now = bpf_ktime_get_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct totals *total = trapped(tgid);

    if (!total)
        return 0;
    struct transaction *transaction = transaction_of(tgid, tid);

    if (!transaction || (!transaction->depth && !transaction->committed_ns)) {
        commit(total, tgid, tid, 0, 0);
        lose(tgid, LOST_BEGAN_UNSEEN);
        return 0;
    }
    if (transaction->depth && --transaction->depth)
        return 0;
    if (transaction->committed_ns)
        __sync_fetch_and_add(&total->committed_ns, now - transaction->committed_ns);
    else
        commit(total, tgid, tid, 1, now - transaction->began_ns);
    transaction->committed_ns = now;
    return 0;
}

// _ITM_abortTransaction(reason): `__transaction_cancel`, the program's own wish
int on_itm_cancel(struct pt_regs *ctx)
{
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct totals *total = trapped(tgid);

    if (!total)
        return 0;
    struct transaction *transaction = transaction_of(tgid, tid);

    __sync_fetch_and_add(&total->cancels, 1);
    if (!transaction)
        return 0;
    if (transaction->depth > 1 && !(PT_REGS_PARM1(ctx) & ITM_OUTER_ABORT)) {
        transaction->depth--;
        return 0;
    }
    transaction->depth = 0;
    transaction->committed_ns = 0;
    return 0;
}

// _ITM_changeTransactionMode
int on_itm_mode(struct pt_regs *ctx)
{
    struct reason_key key = {.reason = "mode change", .tgid = current_ids() >> 32};
    struct totals *total = trapped(key.tgid);

    if (total)
        count_reason(total, &key);
    return 0;
}

// GTM::gtm_thread::restart(this, reason, …): the outermost transaction is tried again.
int on_itm_restart(struct pt_regs *ctx)
{
    u64 now = bpf_ktime_get_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    u32 reason = PT_REGS_PARM2(ctx);
    struct totals *total = trapped(tgid);

    if (!total)
        return 0;
    struct transaction *transaction = transaction_of(tgid, tid);
    int is_timed = transaction && (transaction->depth || transaction->committed_ns);

    __sync_fetch_and_add(&total->restarts[reason & (RESTART_REASONS - 1)], 1);
    abort(total, tgid, tid, is_timed, is_timed ? now - transaction->tried_ns : 0);
    if (is_timed) {
        transaction->depth = 1;
        transaction->tried_ns = now;
    }
    return 0;
}

// raw tracepoint sched_process_exit
int on_thread_exit(void *ctx)
{
    u64 ids = current_ids();
    u32 tid = ids;
    struct transaction_key key = {.thread = tid, .tgid = ids >> 32};
    struct transaction *transaction = transactions.lookup(&key);
    struct thread *thread = threads.lookup(&tid);

    if (transaction) {
        if (transaction->depth)
            lose(key.tgid, LOST_ABANDONED);
        transactions.delete(&key);
    }
    if (!thread || thread->tgid != key.tgid)
        return 0;
    thread->exited_ns = bpf_ktime_get_ns();
    key.thread = thread->known_as;
    transaction = transactions.lookup(&key);
    // Another thread may still take over one that is open.
    if (transaction && !transaction->began_ns)
        transactions.delete(&key);
    return 0;
}

// raw tracepoint sched_process_exec: the new program may run into the same probes.
int on_exec(void *ctx)
{
    u32 tgid = current_ids() >> 32;

    targets.delete(&tgid);
    return 0;
}
