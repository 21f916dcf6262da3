// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Transactions of GCC's libitm.

// Of the _ITM_transactionProperties and the _ITM_abortReason of the ABI.
#define ITM_GOES_IRREVOCABLE 0x40
#define ITM_OUTER_ABORT 0x10

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
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    u64 stack_pointer = PT_REGS_SP(ctx), address = 0;
    struct target *target = targets.lookup(&tgid);
    struct totals *total = trapped(target, tgid, now, PROGRAM_ON_ITM_BEGIN);

    if (!target || !total)
        return 0;
    struct transaction *transaction = transaction_of(target, tgid, tid);

    if (!transaction)
        return 0;
    if (read_user(&address, sizeof(address), (void *)stack_pointer))
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
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct totals *total = trapped(target, tgid, now, PROGRAM_ON_ITM_COMMIT);

    if (!target || !total)
        return 0;
    struct transaction *transaction = transaction_of(target, tgid, tid);

    if (!transaction || (!transaction->depth && !transaction->committed_ns)) {
        if (!target->is_whole)
            return 0;
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
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct totals *total = trapped(target, tgid, now, PROGRAM_ON_ITM_CANCEL);

    if (!target || !total)
        return 0;
    struct transaction *transaction = transaction_of(target, tgid, tid);

    if (!target->is_whole && !(transaction && transaction->depth))
        return 0;
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
    u64 now = now_ns();
    struct reason_key key = {.reason = "mode change", .tgid = current_ids() >> 32};
    struct target *target = targets.lookup(&key.tgid);
    struct totals *total = trapped(target, key.tgid, now, PROGRAM_ON_ITM_MODE);

    if (total)
        count_reason(total, &key);
    return 0;
}

// GTM::gtm_thread::restart(this, reason, …): the outermost transaction is tried again.
int on_itm_restart(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    u32 reason = PT_REGS_PARM2(ctx);
    struct target *target = targets.lookup(&tgid);
    struct totals *total = trapped(target, tgid, now, PROGRAM_ON_ITM_RESTART);

    if (!target || !total)
        return 0;
    struct transaction *transaction = transaction_of(target, tgid, tid);
    int is_timed = transaction && (transaction->depth || transaction->committed_ns);

    if (!is_timed && !target->is_whole)
        return 0;
    __sync_fetch_and_add(&total->restarts[reason & (RESTART_REASONS - 1)], 1);
    abort(total, tgid, tid, is_timed, is_timed ? now - transaction->tried_ns : 0);
    if (is_timed) {
        transaction->depth = 1;
        transaction->tried_ns = now;
    }
    return 0;
}
