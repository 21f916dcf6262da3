// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The ends of threads and of programs.

// raw tracepoint sched_process_exit
int on_thread_exit(void *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct transaction_key key = {.thread = tid, .tgid = tgid};
    struct transaction *transaction = transactions.lookup(&key);
    struct thread *thread = threads.lookup(&tid);

    if (transaction) {
        struct target *target = targets.lookup(&tgid);
        struct totals *total = totals.lookup(&tgid);

        // One that was open when its window ended may have come to its end since.
        if (transaction->depth && target && total && is_inside(target, total, now) &&
            transaction->window_ns == target->from_ns)
            lose(tgid, LOST_ABANDONED);
        transactions.delete(&key);
    }
    if (!thread || thread->tgid != tgid)
        return 0;
    thread->exited_ns = now;
    key.thread = thread->known_as;
    transaction = transactions.lookup(&key);
    // Another thread may still take over one that is open.
    if (transaction && !transaction->began_ns)
        transactions.delete(&key);
    return 0;
}

// raw tracepoint task_newtask, with the new task and the flags of clone: a child has a copy of its
// parent's memory and of the breakpoints in it, unless it shares the memory.
int on_fork(u64 *ctx)
{
    struct notice notice = {.tgid = current_ids() >> 32, .is_fork = 1};

    if (!(ctx[1] & CLONE_VM) && targets.lookup(&notice.tgid))
        notices.ringbuf_output(&notice, sizeof(notice), BPF_RB_FORCE_WAKEUP);
    return 0;
}

// raw tracepoint sched_process_exec: the new program may run into the same probes.
int on_exec(void *ctx)
{
    u32 tgid = current_ids() >> 32;

    targets.delete(&tgid);
    return 0;
}
