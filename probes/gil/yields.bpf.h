// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Where a thread gives the GIL away because it was asked to, and has it again: in the evaluation
// loop, and on the way into a blocking call. The waits are those of waits.bpf.h.

// The call in the evaluation loop that gives the GIL away: the thread still holds it. The release
// wakes the next owner, who may take this CPU too, so the thread's next event may come late.
int on_forced_drop(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;

    struct target *target = trapped(tgid);

    if (!target)
        return 0;
    struct thread *thread = current_thread(tgid, tid);

    if (!thread)
        return 0;
    if (is_second_run(target, thread, ctx, now))
        return 0;
    // It is preempted by one that waits, so that lock is known even if it is this one's first.
    if (!thread->cond && target->cond != MANY_LOCKS)
        thread->cond = target->cond;
    struct gil_key key = {.cond = thread->cond, .tgid = tgid};
    struct gil_state state = {};

    u64 slow_drop_ns = answer_drop_request(&key, 0, 1, now);
    struct blame *blame = 0;

    if (is_left_out(target, thread, 0, LEFT_OUT_DROP, now)) {
        note_slow_drop_of_nobody(tgid, slow_drop_ns);
        return 0;
    }
    BEGIN_CHANGE(thread);
    thread->forced_drop_ns = now;
    END_CHANGE(thread);
    // The thread still holds the lock, so `last_holder` is its own state.
    // What the thread stands in is read later, when it keeps nobody waiting.
    if (key.cond && !read_gil(target, key.cond, &state))
        blame = begin_blame(target, thread, tid, state.last_holder, now, AFTER_PREEMPTION);
    note_own_slow_drop(blame, tgid, slow_drop_ns);
    return 0;
}

// Where the evaluation loop continues: it has the GIL again. Mostly a timed wait has already ended
// the wait; without one, nobody held the GIL any more when this thread came to take it.
int on_forced_take(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tid = ids;
    struct thread *thread = threads.lookup(&tid);
    struct target *target = trapped(ids >> 32);

    if (!target || !thread)
        return 0;
    thread->trapped_at = 0;
    forget_unfollowed(thread, placed_at(target));
    end_left_out(target, thread, now);
    if (!thread->forced_drop_ns)
        return 0;
    struct blame *blame = blames.lookup(&tid);

    if (blame && blame->wait_started_ns == thread->forced_drop_ns && !blame->waiter) {
        blame->sampled_ns = now;
        blame->ends_wait = 1;
        next_program.call(ctx, WALK_STACK);
    }
    end_wait_in_program(ctx, thread, thread->forced_drop_ns, now, AFTER_PREEMPTION);
    return 0;
}

// call pthread_cond_wait(switch_cond, switch_mutex) in drop_gil and its inlined copies
int on_yield(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tid = ids;
    struct target *target = trapped(ids >> 32);

    if (!target)
        return 0;
    struct gil_key key = {
        .cond = PT_REGS_PARM1(ctx) - target->switch_cond_at,
        .tgid = ids >> 32,
    };

    // Some of these sites serve other condition variables too. A thread yields to one that has
    // waited, so a GIL that is not known by now is not one.
    if (!gils.lookup(&key))
        return 0;
    struct thread *thread = current_thread(key.tgid, tid);

    if (!thread || is_second_run(target, thread, ctx, now))
        return 0;
    u64 slow_drop_ns = answer_drop_request(&key, 0, 1, now);

    if (is_left_out(target, thread, key.cond, LEFT_OUT_SLEEP, now)) {
        note_slow_drop_of_nobody(key.tgid, slow_drop_ns);
        return 0;
    }
    BEGIN_CHANGE(thread);
    thread->cond = key.cond;
    if (!thread->forced_drop_ns)
        thread->yield_started_ns = now;
    END_CHANGE(thread);
    if (!thread->forced_drop_ns) {
        struct blame *blame = begin_blame(target, thread, tid, 0, now, AFTER_PREEMPTION);

        note_own_slow_drop(blame, key.tgid, slow_drop_ns);
        if (blame && wants_stack(blame))
            next_program.call(ctx, WALK_STACK);
    }
    return 0;
}

// The entry of pthread_cond_wait itself.
int on_libc_yield(struct pt_regs *ctx)
{
    u64 ids = current_ids();
    u32 tgid = ids >> 32;
    struct target *target = targets.lookup(&tgid);

    if (target) {
        struct gil_key key = {
            .cond = PT_REGS_PARM1(ctx) - target->switch_cond_at,
            .tgid = tgid,
        };

        if (gils.lookup(&key) && !has_stopped() && returns_to_probe(ctx, tgid, ids, 1))
            next_program.call(ctx, ON_YIELD);
    }
    trapped(tgid);
    return 0;
}

// The jump behind that call: another thread has taken the lock, and most likely still has it. What
// the evaluation loop released is not back yet.
int on_yield_return(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct thread *thread = threads.lookup(&tid);
    struct target *target = trapped(tgid);
    struct gil_state state = {};

    if (!target || !thread)
        return 0;
    thread->trapped_at = 0;
    forget_unfollowed(thread, placed_at(target));
    if (thread->left_out == LEFT_OUT_SLEEP)
        end_left_out(target, thread, now);
    if (!(thread->yield_started_ns || thread->forced_drop_ns))
        return 0; // another condition variable, or a yield that began before the probe
    struct blame *blame = blames.lookup(&tid);

    if (blame && blame->wait_started_ns && !blame->holder &&
        !read_gil(target, thread->cond, &state) && state.locked == 1 &&
        state.last_holder != blame->tstate) {
        want_holder(thread, blame, &state, now, 0);
        blame->ends_wait = thread->yield_started_ns != 0;
        next_program.call(ctx, WALK_STACK);
    }
    if (thread->yield_started_ns)
        end_wait_in_program(ctx, thread, thread->yield_started_ns, now, AFTER_PREEMPTION);
    return 0;
}
