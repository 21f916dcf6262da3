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

// _stm_start_transaction: not entered again for another try. A thread that begins a transaction has
// come to the end of the last one, which is what is counted: it is not known when that was.
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

    if (!transaction)
        return 0;
    if (transaction->began_ns)
        commit(total, tgid, tid, 0, 0);
    begin(transaction, now);
    return 0;
}

// stm_unregister_thread_local: the thread ends, and begins no further transaction.
int on_unregister(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct totals *total = trapped(target, tgid, now, PROGRAM_ON_UNREGISTER);

    if (!target || !total)
        return 0;
    struct transaction *transaction = transaction_of(target, tgid, tid);

    if (!transaction || !transaction->began_ns)
        return 0;
    commit(total, tgid, tid, 0, 0);
    transaction->began_ns = 0;
    return 0;
}

// stm_abort_transaction: what follows is the next try. What the last one has cost is not known, for
// nothing tells how long it has waited.
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
    int has_begun = transaction && transaction->began_ns;

    if (has_begun || target->is_whole)
        count_abort(total, tgid, tid);
    if (transaction && !has_begun && target->is_whole)
        begin(transaction, now); // it had begun before the probes were there
    return 0;
}

// What has called the function whose entry this is.
static __always_inline u64 caller(struct pt_regs *ctx, u32 tgid)
{
    u64 address = 0;

    if (read_user(&address, sizeof(address), (void *)PT_REGS_SP(ctx)))
        lose(tgid, LOST_READ_FAULT);
    return address;
}

// _stm_leave_noninevitable_transactional_zone(): becomes inevitable next, and gives no reason.
int on_leave(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);

    if (!trapped(target, tgid, now, PROGRAM_ON_LEAVE))
        return 0;
    struct thread *thread = current_thread(tgid, tid);

    if (thread)
        thread->left_at = caller(ctx, tgid);
    return 0;
}

// _stm_become_inevitable(reason)
int on_become_inevitable(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct reason_key key = {.tgid = tgid};
    u64 reason = PT_REGS_PARM1(ctx);
    struct target *target = targets.lookup(&tgid);
    struct totals *total = trapped(target, tgid, now, PROGRAM_ON_BECOME_INEVITABLE);

    if (!total)
        return 0;
    struct thread *thread = known_thread(tgid, tid);
    u64 left_at = thread ? thread->left_at : 0;

    if (thread)
        thread->left_at = 0;
    if (reason < LEAST_ADDRESS)
        key.place = left_at ? left_at : caller(ctx, tgid);
    else if (read_user_str(key.reason, sizeof(key.reason), (void *)reason) < 0) {
        lose(tgid, LOST_READ_FAULT);
        __builtin_memcpy(key.reason, "(unreadable)", 12);
    }
    count_reason(total, &key);
    return 0;
}
