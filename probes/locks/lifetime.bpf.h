// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The ends of threads and of programs.

// raw tracepoint sched_process_exit
int on_thread_exit(void *ctx)
{
    u64 now = now_ns(), ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct thread *thread = threads.lookup(&tid);

    if (!thread || thread->tgid != tgid)
        return 0;
    struct wake_key key = {.semaphore = thread->semaphore, .tgid = tgid};
    struct target *target = targets.lookup(&tgid);
    struct totals *total = totals.lookup(&tgid);

    // What it was waiting for when its process ended has kept it until now.
    if (thread->asleep_ns && target && total && is_inside(target, total, now) &&
        thread->window_ns == target->from_ns)
        wake(thread, target, tid, now);
    wakes.delete(&key);
    thread->asleep_ns = 0;
    thread->tstate = 0;
    thread->exited_ns = now;
    works.delete(&tid);
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
