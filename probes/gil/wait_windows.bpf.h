// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Windows of waits, in a process to which seeing all of them would cost more than it may.
//
//   counts   a wait that begins between `from_ns` and `until_ns`. It is followed to its end, which
//            may come later: so the durations that are counted are whole, and no length is
//            preferred.
//   left out every other one. The probes are there for some time before a window, in which whoever
//            waits already runs into them and is known: its wait did not begin in the window.
//
// Between windows the probes are out. What was in flight then has been followed to nowhere.

// When the probes were put back into the process; 0: they have never been out.
static __always_inline u64 placed_at(const struct target *target)
{
    u32 slot = target->slot;
    struct wait_window *window = wait_windows.lookup(&slot);

    return window ? READ_ONCE_U64(window->placed_ns) : 0;
}

// Whether a wait counts that begins at *now*.
static __always_inline int is_in_window(const struct target *target, u64 now)
{
    u32 slot = target->slot;
    struct wait_window *window = wait_windows.lookup(&slot);

    return !window ||
           (now >= READ_ONCE_U64(window->from_ns) && now < READ_ONCE_U64(window->until_ns));
}

// Longer than a program runs.
#define SECOND_RUN_NS 1000000

static __always_inline int is_waiting(const struct thread *thread)
{
    return thread->wait_started_ns || thread->forced_drop_ns || thread->yield_started_ns;
}

// Forgets what a thread was in when the probes were taken out: its end was not seen.
static __always_inline void forget_unfollowed(struct thread *thread, u64 placed_ns)
{
    u64 since_ns = thread->wait_started_ns;

    if (thread->left_out_ns < placed_ns)
        thread->left_out = LEFT_OUT_NONE;
    if (!since_ns)
        since_ns = thread->forced_drop_ns ? thread->forced_drop_ns : thread->yield_started_ns;
    if (!since_ns || since_ns >= placed_ns)
        return;
    BEGIN_CHANGE(thread);
    thread->wait_started_ns = 0;
    thread->forced_drop_ns = 0;
    thread->yield_started_ns = 0;
    thread->failed_since_ns = 0;
    END_CHANGE(thread);
}

// Since when a thread has been in the wait that it was seen in last; 0: in none.
static __always_inline u64 last_seen_since(const struct thread *thread)
{
    return thread->wait_started_ns ? thread->wait_started_ns : thread->left_out_since_ns;
}

// Whether the program at this instruction has run in this trap already. While a process gets probes
// of its own and the shared ones are not out yet, both are there. Between two traps of a thread at
// one of these places there is always one at another.
static __always_inline int is_second_run(const struct target *target, struct thread *thread,
                                         struct pt_regs *ctx, u64 now)
{
    u32 slot = target->slot;
    struct wait_window *window = wait_windows.lookup(&slot);
    u64 at = PT_REGS_IP(ctx);

    if (!window || now >= READ_ONCE_U64(window->shared_until_ns))
        return 0;
    int is_second = thread->trapped_at == at && now - thread->trapped_ns < SECOND_RUN_NS;

    thread->trapped_at = at;
    thread->trapped_ns = now;
    return is_second;
}

// Whether the wait for the lock at *cond* that a thread begins now, or is in, does not count.
// *as* says by what it would be left out.
static __always_inline int is_left_out(const struct target *target, struct thread *thread, u64 cond,
                                       u32 as, u64 now)
{
    u64 placed_ns = placed_at(target);

    if (!placed_ns)
        return 0;
    forget_unfollowed(thread, placed_ns);
    if (is_waiting(thread))
        return 0;
    if (!thread->left_out && is_in_window(target, now))
        return 0;
    if (cond)
        thread->cond = cond;
    if (!thread->left_out)
        thread->left_out_since_ns = now;
    if (!thread->left_out || as == LEFT_OUT_DROP)
        thread->left_out = as;
    thread->left_out_ns = now;
    // A later wait comes after this one, and not after that release.
    thread->released_ns = 0;
    return 1;
}

// The wait that does not count is over: the thread has the lock.
static __always_inline void end_left_out(struct target *target, struct thread *thread, u64 now)
{
    if (!thread->left_out)
        return;
    __sync_fetch_and_add(&target->ended_waits, 1);
    thread->left_out = LEFT_OUT_NONE;
    // So that it is known how long it took to switch to this thread.
    thread->last_wait_started_ns = thread->left_out_since_ns;
    thread->last_wait_ended_ns = now;
    thread->left_out_since_ns = 0;
}
