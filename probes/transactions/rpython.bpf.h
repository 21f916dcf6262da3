// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Transactions of RPython programs such as PyPy-STM.

#define LEAST_ADDRESS 4096 // what is less is no string: 1 says "do not sleep"

// So that what is noted of its transactions can go when it ends.
static __always_inline void know_thread(u32 tgid, u32 tid, u64 address)
{
    struct thread *thread = current_thread(tgid, tid);

    if (thread)
        thread->known_as = address;
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

static __always_inline void end_collection(struct totals *total, struct transaction *transaction,
                                           u32 generation, u64 now)
{
    u64 since_ns = transaction->collecting_since_ns[generation];

    if (!since_ns)
        return;
    transaction->collecting_since_ns[generation] = 0;
    __sync_fetch_and_add(&total->collected_ns[generation], now - since_ns);
    __sync_fetch_and_add(&total->collected[generation], 1);
}

// Run time since *since_ns*: what a thread has waited or was outside is none.
static __always_inline u64 run_ns(const struct transaction *transaction, u64 since_ns, u64 now)
{
    u64 other_ns = transaction->waited_ns + transaction->detached_ns;
    u64 ns = now - since_ns;

    return ns > other_ns ? ns - other_ns : 0;
}

// _stm_profiling_event(thread, event, marker) of RPython, called while the log is on. What another
// thread does to a transaction that was left open comes with the thread that began it.
int on_event(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    u32 number = PT_REGS_PARM2(ctx);
    struct target *target = targets.lookup(&tgid);
    struct totals *total = trapped(target, tgid, now, PROGRAM_ON_EVENT);

    if (!target || !total || number >= EVENT_NUMBERS)
        return 0;
    u32 event = target->events[number & (EVENT_NUMBERS - 1)];

    if (event == EVENT_OTHER)
        return 0;
    struct transaction *transaction = transaction_of(target, tgid, PT_REGS_PARM1(ctx));

    if (!transaction)
        return 0;
    switch (event) {
    case EVENT_START:
        if (transaction->began_ns)
            lose(tgid, LOST_ABANDONED);
        end_wait(total, transaction, now);
        begin(transaction, now);
        transaction->owner = tid;
        know_thread(tgid, tid, PT_REGS_PARM1(ctx));
        break;
    case EVENT_COMMIT:
    case EVENT_ABORT: {
        u64 began_ns = transaction->began_ns;

        end_wait(total, transaction, now);
        reattach(transaction, now);
        u64 ns = run_ns(transaction, began_ns, now);

        u32 owner = began_ns ? transaction->owner : tid;

        transaction->began_ns = 0;
        // One that an abort has cut short has no end.
        transaction->collecting_since_ns[COLLECTION_MAJOR] = 0;
        if (!began_ns && !target->is_whole)
            break;
        if (event == EVENT_ABORT) {
            abort(total, tgid, owner, began_ns != 0, ns);
        } else {
            commit(total, tgid, owner, began_ns != 0, ns);
            if (!began_ns)
                lose(tgid, LOST_BEGAN_UNSEEN);
        }
        break;
    }
    case EVENT_DETACH:
        transaction->detached_since_ns = now;
        break;
    case EVENT_REATTACH:
        reattach(transaction, now);
        break;
    case EVENT_GC_MINOR_START: // it runs on without having said so
        reattach(transaction, now);
        transaction->collecting_since_ns[COLLECTION_MINOR] = now;
        break;
    case EVENT_GC_MINOR_DONE:
        end_collection(total, transaction, COLLECTION_MINOR, now);
        break;
    case EVENT_GC_MAJOR_START:
        transaction->collecting_since_ns[COLLECTION_MAJOR] = now;
        break;
    case EVENT_GC_MAJOR_DONE:
        end_collection(total, transaction, COLLECTION_MAJOR, now);
        break;
    case EVENT_CONFLICT:
        __sync_fetch_and_add(&total->conflicts, 1);
        break;
    case EVENT_WAIT_FREE_SEGMENT:
    case EVENT_WAIT_SYNCING:
    case EVENT_WAIT_SYNC_PAUSE:
    case EVENT_WAIT_OTHER_INEVITABLE:
    case EVENT_WAIT_CONTENTION:
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
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct totals *total = trapped(target, tgid, now, PROGRAM_ON_START);

    if (!target || !total)
        return 0;
    struct transaction *transaction = transaction_of(target, tgid, tid);

    if (transaction)
        begin(transaction, now);
    commit(total, tgid, tid, 0, 0);
    return 0;
}

// stm_abort_transaction: what follows is the next try.
int on_abort(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct totals *total = trapped(target, tgid, now, PROGRAM_ON_ABORT);

    if (!target || !total)
        return 0;
    struct transaction *transaction = transaction_of(target, tgid, tid);
    u64 tried_ns = transaction ? transaction->tried_ns : 0;

    if (tried_ns || target->is_whole)
        abort(total, tgid, tid, tried_ns != 0, now - tried_ns);
    if (transaction)
        transaction->tried_ns = now;
    return 0;
}

// _stm_become_inevitable(reason)
int on_become_inevitable(struct pt_regs *ctx)
{
    u64 now = now_ns();
    struct reason_key key = {.tgid = current_ids() >> 32};
    u64 reason = PT_REGS_PARM1(ctx);
    struct target *target = targets.lookup(&key.tgid);
    struct totals *total = trapped(target, key.tgid, now, PROGRAM_ON_BECOME_INEVITABLE);

    if (!total)
        return 0;
    if (reason < LEAST_ADDRESS)
        __builtin_memcpy(key.reason, "(none given)", 12);
    else if (read_user_str(key.reason, sizeof(key.reason), (void *)reason) < 0) {
        lose(key.tgid, LOST_READ_FAULT);
        __builtin_memcpy(key.reason, "(unreadable)", 12);
    }
    count_reason(total, &key);
    return 0;
}
