// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Holds of the GIL, seen at every acquisition and release: full mode, or a window of it.
//
//   hold           = release - acquisition, by the same thread, less what the traps themselves add
//   held time      = the part of the holds that lies in windows
//   switch latency = acquisition by a thread that was waiting already - the release before it
//
// Sites: `call pthread_cond_signal` with switch_cond in take_gil, with cond wherever the GIL is
// released. The lock's mutex is held at both, so its record needs no atomics, and `locked` has just
// been written.
//
// This is the path that code without any contention runs through, so it is as short as it can be:
// records lie in arrays and are found by the slot that comes with the probe; only the thread that
// releases is looked up in a table. What can be worked out later is left to user space.

// No table has as many entries.
#define NO_SLOT 0xffffffff

// The slot of the traced process: a number that goes with the probe where the kernel knows such
// (bpf_get_attach_cookie, for links since Linux 6.6), or else what the process is remembered by.
static __always_inline u32 current_slot(struct pt_regs *ctx)
{
    if (PARAMETER(HAS_COOKIES))
        return bpf_get_attach_cookie(ctx);
    u32 tgid = current_ids() >> 32;
    struct target *target = targets.lookup(&tgid);

    return target ? target->slot : NO_SLOT;
}

// The lock at address *cond*, or 0: another condition variable, or a lock without a slot.
static __always_inline struct lock *lock_at(struct lock *first, const struct window *window,
                                            u64 cond)
{
    struct gil_key key = {.cond = cond, .tgid = first->tgid};

    if (first->cond == cond)
        return first;
    if (!window->has_other_locks)
        return 0;
    u32 *slot = other_locks.lookup(&key);

    return slot ? locks.lookup(slot) : 0;
}

// The part of a hold that lies in the window.
static __always_inline u64 part_inside(const struct window *window, u64 since, u64 now)
{
    u64 end = now < window->until_ns ? now : window->until_ns;

    return end > since ? end - since : 0;
}

static __always_inline u64 less_traps(const struct window *window, u64 ns)
{
    return ns > window->inside_hold_ns ? ns - window->inside_hold_ns : 0;
}

// Since when the thread that acquires the GIL now has needed it; 0: it did not have to wait.
static __always_inline u64 needed_since(u32 tgid, u32 tid, u64 released_ns)
{
    struct thread *thread = threads.lookup(&tid);

    if (!thread)
        return 0;
    // A semaphore is acquired a few instructions before the wait for it ends.
    u64 since_ns = thread->forced_drop_ns ? thread->forced_drop_ns : thread->wait_started_ns;

    if (since_ns) {
        struct target *target = targets.lookup(&tgid);

        // What was in flight when the probes on waits were taken out has ended unseen.
        return target && since_ns < placed_at(target) ? 0 : since_ns;
    }
    // A wait ends before the acquisition, but not before the release.
    return thread->last_wait_ended_ns >= released_ns ? thread->last_wait_started_ns : 0;
}

// Whether a hold is so long that the request is noted in which it was.
static __always_inline int is_long(const struct lock *lock, u64 ns)
{
    struct settings *common = current_settings();
    u32 tgid = lock->tgid;

    return common && ns >= common->slow_drop_ns && contexts.lookup(&tgid);
}

// Returns whether the request is to be noted in which the hold was.
static __always_inline int finish_hold(struct lock *lock, const struct window *window, u32 tid,
                                       u64 now)
{
    u64 began_ns = lock->held_since_ns;
    u64 ns = less_traps(window, now - began_ns);
    u64 from_ns = began_ns > window->from_ns ? began_ns : window->from_ns;
    u64 held_ns = part_inside(window, from_ns, now);

    if (began_ns)
        held_ns = less_traps(window, held_ns);
    struct thread *thread = current_thread(lock->tgid, tid);
    int is_noted = thread && began_ns && is_long(lock, ns);

    // The thread first: who reads the lock before the threads and finds no hold in flight there
    // finds it counted here.
    if (thread) {
        BEGIN_CHANGE(thread);
        thread->hold_ns += held_ns;
        thread->released_ns = now;
        thread->last_hold_began_ns = began_ns ? began_ns : from_ns;
        if (began_ns)
            thread->holds++;
        END_CHANGE(thread);
        if (is_noted) {
            thread->long_hold_ns = ns;
            thread->noting_cond = lock->cond;
        }
        end_hold_for_region(thread, tid, held_ns);
    }
    BEGIN_CHANGE(lock);
    lock->held_since_ns = 0;
    lock->released_ns = now;
    lock->held_ns += held_ns;
    lock->holder_tid = tid;
    if (began_ns) {
        lock->hold_sum_ns += ns;
        lock->hold_slots[slot_of_ns(ns)]++;
    }
    END_CHANGE(lock);
    send_hold(lock, tid, from_ns, held_ns);
    return is_noted;
}

// Until when the window counts that is open *now*; 0: none is. One whose traps are used up ends
// here.
static __always_inline u64 open_until(const struct lock *first, struct window *window, u64 now)
{
    u64 until_ns = READ_ONCE_U64(window->until_ns);

    if (now < window->from_ns || now >= until_ns)
        return 0;
    if (first->traps >= window->stop_at_traps) {
        window->until_ns = now;
        give_notice(NOTICE_WINDOW, first->tgid, 0);
        return 0;
    }
    return until_ns;
}

// The thread that runs this has acquired *lock*.
static __always_inline void take_lock(struct lock *first, struct lock *lock, struct window *window,
                                      u64 now)
{
    u64 until_ns = open_until(first, window, now);
    u32 tid = current_ids();

    if (!until_ns) {
        __sync_fetch_and_add(&first->traps, 1);
        // What was in flight when the window began is over, if it was anything.
        if (!lock->held_since_ns)
            lock->released_ns = now;
        return;
    }
    if (lock->holder_tid != tid && lock->held_since_ns)
        lose(lock->tgid, INVALID_HOLDER);
    BEGIN_CHANGE(lock);
    if (lock->holder_tid != tid && lock->released_ns >= window->from_ns) {
        u64 needed_ns = needed_since(lock->tgid, tid, lock->released_ns);

        if (needed_ns && needed_ns < lock->released_ns) {
            u64 ns = now - lock->released_ns;

            lock->switch_sum_ns += ns;
            lock->switch_slots[slot_of_ns(ns)]++;
        }
    }
    lock->holder_tid = tid;
    lock->held_since_ns = now;
    END_CHANGE(lock);
    if (lock == first)
        begin_hold_for_region(first->tgid, tid, now);
    // Counting is a full barrier too. User space ends a window first, and then checks whether a
    // hold is left to be followed: either it sees this one, or the end is seen here and the hold,
    // which nobody would see the end of, is taken back.
    __sync_fetch_and_add(&first->traps, 1);
    if (READ_ONCE_U64(window->until_ns) != until_ns)
        lock->held_since_ns = 0;
}

// The thread that runs this is about to release *lock*, or has just done so. Returns whether the
// request is to be noted in which it held it.
static __always_inline int release_lock(struct lock *lock, const struct window *window, u64 now)
{
    u32 tid = current_ids();

    if (lock->held_since_ns) {
        if (lock->holder_tid != tid)
            lose(lock->tgid, INVALID_HOLDER);
    } else if (!window->counts_begun || now < window->from_ns ||
               lock->released_ns >= window->from_ns) {
        return 0; // its acquisition was not seen, nor does it reach back to the window's beginning
    }
    int is_noted = finish_hold(lock, window, tid, now);

    if (now >= window->until_ns)
        give_notice(NOTICE_WINDOW, lock->tgid, tid);
    return is_noted;
}

// call pthread_cond_signal(switch_cond) in take_gil: `locked` is 1, this thread is the holder
int on_acquire(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u32 slot = current_slot(ctx);
    struct window *window = windows.lookup(&slot);
    struct lock *first = locks.lookup(&slot);

    if (!window || !first || has_stopped())
        return 0;
    u64 cond = PT_REGS_PARM1(ctx) - first->switch_cond_at;

    if (!first->cond)
        first->cond = cond; // Python has only just come to life, in its first thread
    struct lock *lock = lock_at(first, window, cond);

    if (!lock) {
        __sync_fetch_and_add(&first->traps, 1);
        __sync_fetch_and_add(&first->unknown_takes, 1);
        // Told again each time that the number doubles, should a notice be lost.
        if ((first->unknown_takes & (first->unknown_takes - 1)) == 0)
            give_notice(NOTICE_LOCK, first->tgid, 0);
        return 0;
    }
    take_lock(first, lock, window, now);
    return 0;
}

// call pthread_cond_signal(cond) where the GIL is released: `locked` is 0, the mutex still held
int on_release(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u32 slot = current_slot(ctx);
    struct window *window = windows.lookup(&slot);
    struct lock *first = locks.lookup(&slot);

    if (!window || !first || has_stopped())
        return 0;
    __sync_fetch_and_add(&first->traps, 1);
    struct lock *lock = lock_at(first, window, PT_REGS_PARM1(ctx));

    if (!lock)
        return 0; // some of these sites serve other condition variables too
    if (release_lock(lock, window, now))
        next_program.call(ctx, NOTE_HOLDERS_TRACE);
    return 0;
}
