// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The ends of threads and of programs: what was in flight is counted up to here.

// A thread that ends its process, or replaces its program, holds the GIL until then.
static __always_inline void end_hold(const struct target *target, u32 tid, int is_any, u64 now)
{
    u32 slot = target->slot;
    struct window *window = windows.lookup(&slot);
    struct lock *lock = locks.lookup(&slot);

    if (window && lock && lock->held_since_ns && (is_any || lock->holder_tid == tid))
        finish_hold(lock, window, lock->holder_tid, now);
}

// raw tracepoint sched_process_exit: a waiting thread may end without ever getting the GIL, as all
// threads do that wait while their interpreter shuts down.
int on_thread_exit(void *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);

    if (has_stopped())
        return 0;
    if (target)
        end_hold(target, tid, 0, now);
    struct thread *thread = threads.lookup(&tid);

    if (!thread || thread->tgid != tgid) {
        drop_blame(tgid, tid);
        return 0;
    }
    if (target)
        forget_unfollowed(thread, placed_at(target));
    u32 cause = thread->wait_started_ns ? thread->cause : AFTER_PREEMPTION;
    u64 started_ns = thread->wait_started_ns;

    if (!started_ns)
        started_ns = thread->forced_drop_ns ? thread->forced_drop_ns : thread->yield_started_ns;
    if (started_ns) {
        lose(tgid, LOST_ABANDONED);
        finish_wait(thread, tid, started_ns, now, cause);
    }
    leave_place(thread, tid);
    thread->left_out = LEFT_OUT_NONE;
    thread->exited_ns = now;
    drop_blame(tgid, tid);
    return 0;
}

// Any place of a probe: to put it there in one process brings back what that has lost of the probes
// that all share.
int on_nothing(struct pt_regs *ctx)
{
    return 0;
}

// raw tracepoint task_newtask, with the new task and the flags of clone: a child has a copy of its
// parent's memory and of the breakpoints in it, unless it shares the memory.
int on_fork(u64 *ctx)
{
    u32 tgid = current_ids() >> 32;

    if (!(ctx[1] & CLONE_VM) && targets.lookup(&tgid))
        give_notice(NOTICE_FORK, tgid, 0);
    return 0;
}

// raw tracepoint sched_process_exec: what is known of this process no longer holds.
int on_exec(void *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32;
    struct target *target = targets.lookup(&tgid);

    if (has_stopped())
        return 0;
    if (target) {
        struct window *window = windows.lookup(&target->slot);

        end_hold(target, 0, 1, now);
        if (window)
            window->until_ns = now; // the new program may run into the same probes
        targets.delete(&tgid);
    }
    if (!target && !PARAMETER(DISCOVER))
        return 0;
    if (tgid)
        give_notice(NOTICE_EXEC, tgid, ids);
    return 0;
}
