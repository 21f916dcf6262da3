// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// How long threads wait for locks, on the contended path alone.
//
//     wait = had - wanted           of a mutex, spinning included
//     wait = woken - fallen asleep  of all else
//
// A mutex is had when the thread takes it by itself, or when it wakes up for it the last time. What
// a thread waits for in between, such as the end of a stop of the world, is that wait and not this
// one: no moment of a thread counts twice. A wait counts as soon as it was slept in, so that one
// which is given up has counted too.

#define ZERO_FLAG 0x40

static int (*read_kernel)(void *to, u32 size,
                          const void *from) = (void *)BPF_FUNC_probe_read_kernel;

// Whether a wait is counted by its holder. These run on, so they are many, and must not take the
// room of the waits themselves.
static __always_inline int is_room_for(struct wait_key *key, struct thread *thread)
{
    if (waits.lookup(key))
        return 1;
    if (thread->held_waits >= MOST_HELD_WAITS)
        return 0;
    thread->held_waits++;
    return 1;
}

// A part of a wait that ends *now*.
static __always_inline void count_wait(struct thread *thread, u32 tid, u32 what, u64 wait_ns,
                                       u64 slept_ns, u64 is_new, u64 now)
{
    struct wait fresh = {};
    struct wait_key key = {
        .stack = what ? thread->stacks[WANTS_OTHER] : thread->stacks[WANTS_MUTEX],
        .released = what ? thread->released[WANTS_OTHER] : thread->released[WANTS_MUTEX],
        .held = what ? 0 : thread->held,
        .kind = what ? thread->kinds[WANTS_OTHER] : thread->kinds[WANTS_MUTEX],
        .tgid = thread->tgid,
        .tid = tid,
    };

    if (what == WANTS_MUTEX)
        __builtin_memcpy(key.type, thread->type, sizeof(key.type));
    if (key.held && !is_room_for(&key, thread))
        key.held = 0;
    struct wait *wait = waits.lookup_or_try_init(&key, &fresh);

    thread->counted_ns += wait_ns;
    thread->counted_until_ns = now;
    if (!wait) {
        lose(thread->tgid, LOST_TABLE_FULL);
        return;
    }
    wait->wait_ns += wait_ns;
    wait->slept_ns += slept_ns;
    wait->waits += is_new;
    wait->sleeps += slept_ns > 0;
    if (wait_ns > wait->longest_ns)
        wait->longest_ns = wait_ns;
    send_wait(thread, tid, what, wait_ns, now);
}

// What has not been counted yet of the wait for the mutex.
static __always_inline u64 uncounted_ns(const struct thread *thread, u64 now)
{
    u64 wait_ns = now - thread->wanted_ns, counted_ns = thread->counted_ns;

    counted_ns -= thread->counted_then_ns;
    return wait_ns > counted_ns ? wait_ns - counted_ns : 0;
}

// The thread wants the mutex at *address* since *wanted_ns*.
static __always_inline void want(struct thread *thread, const struct target *target,
                                 const struct python *python, u64 address, u64 wanted_ns)
{
    thread->wanted_ns = wanted_ns;
    thread->counted_then_ns = thread->counted_ns;
    thread->is_counted = 0;
    thread->released[WANTS_MUTEX] = 0; // nobody is seen to release what it gets by spinning
    thread->held = 0;
    tell_mutex(thread, target, python, address);
}

// Sees who has the mutex that the thread has begun to want; *in_sections* where there are any: in a
// build with a GIL objects have no locks.
static __always_inline void see_holder(struct thread *thread, const struct target *target,
                                       const struct python *python, struct totals *total, u32 tid,
                                       int in_sections)
{
    u64 from_ns = now_ns(), took_ns;
    struct work *work = own_work(tid);

    thread->held = work ? held_by(work, thread, target, python, total, tid, in_sections) : 0;
    took_ns = now_ns() - from_ns;
    // Threads may be many: this costs more than a trap is taken to cost.
    __sync_fetch_and_add(&total->cost_ns, took_ns < MOST_SEARCH_NS ? took_ns : MOST_SEARCH_NS);
}

// The address of the lock where a thread spins for it; 0: it cannot be read.
static __always_inline u64 spun_for(struct pt_regs *ctx, const struct target *target)
{
    u64 address = 0;

    read_kernel(&address, sizeof(address), (void *)ctx + target->lock_register);
    return address;
}

// Where a thread begins to want a mutex that is taken, in builds in which it spins first.
int on_want(struct pt_regs *ctx)
{
    u64 now = now_ns(), ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct python *python = pythons.lookup(&tgid);
    struct totals *total = trapped(target, tgid, now, PROGRAM_ON_WANT);
    struct thread *thread;

    if (!target || !python || !total)
        return 0;
    thread = current_thread(target, tgid, tid);
    if (!thread)
        return 0;
    find_tstate(thread, python, tid);
    // From here on: if the lock is free before the holder is found, the thread has waited for that.
    want(thread, target, python, spun_for(ctx, target), now_ns());
    see_holder(thread, target, python, total, tid, 1);
    return 0;
}

// The jump behind the exchange that takes a mutex: it was taken if the zero flag is set.
int on_take(struct pt_regs *ctx)
{
    u64 now = now_ns(), ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct python *python = pythons.lookup(&tgid);
    struct thread *thread;

    if (!target || !python || !trapped(target, tgid, now, PROGRAM_ON_TAKE))
        return 0;
    thread = current_thread(target, tgid, tid);
    if (!thread || !(ctx->flags & ZERO_FLAG) || !thread->wanted_ns)
        return 0;
    if (!thread->is_counted) {
        find_tstate(thread, python, tid);
        tell_again(thread, target, python, spun_for(ctx, target));
        thread->stacks[WANTS_MUTEX] = place(thread, python, tid);
    }
    count_wait(thread, tid, WANTS_MUTEX, uncounted_ns(thread, now), 0, !thread->is_counted, now);
    queue_to_stop(thread, target, now);
    thread->wanted_ns = 0;
    return 0;
}

// Lets who wakes it know that it sleeps for an RLock, with its *number*, or because of a stop, with
// none. That may have been faster; what is there from before the window has nothing to say.
static __always_inline void note_sleeper(const struct thread *thread, u32 tid, u64 semaphore,
                                         u64 number, u64 now)
{
    struct wake_key key = {.semaphore = semaphore, .tgid = thread->tgid};
    struct wake *wake = wakes.lookup(&key),
                nobody = {.asleep_ns = now, .number = number, .tid = tid};

    if (wake && wake->at_ns >= thread->window_ns)
        return;
    // What it has left where it was not seen to wake up.
    key.semaphore = thread->semaphore;
    wakes.delete(&key);
    key.semaphore = semaphore;
    if (wakes.update(&key, &nobody))
        lose(thread->tgid, LOST_TABLE_FULL);
}

// The call that puts a thread to sleep in the parking lot.
int on_park(struct pt_regs *ctx)
{
    u64 now = now_ns(), ids = current_ids(), semaphore = PT_REGS_PARM1(ctx), number = 0;
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct python *python = pythons.lookup(&tgid);
    struct totals *total = trapped(target, tgid, now, PROGRAM_ON_PARK);
    struct thread *thread;
    struct work *work;
    struct park *park;

    if (!target || !python || !total)
        return 0;
    thread = current_thread(target, tgid, tid);
    if (!thread)
        return 0;
    work = own_work(tid);
    if (!work) {
        lose(tgid, LOST_TABLE_FULL);
        return 0;
    }
    park = &work->park;
    // First: of what comes after a search the verifier would follow each of its ends.
    find_tstate(thread, python, tid);
    if (read_park(park, semaphore, now)) {
        lose(tgid, LOST_READ_FAULT);
        return 0;
    }
    if (park->wanted_ns < target->from_ns)
        park->wanted_ns = target->from_ns;
    thread->sleeps_for = park->is_mutex ? WANTS_MUTEX : WANTS_OTHER;
    if (park->is_mutex) {
        // Where it spins first, that has told since when; it may have slept for the mutex before.
        if (!target->spins && thread->wanted_ns != park->wanted_ns) {
            want(thread, target, python, park->address, park->wanted_ns);
            see_holder(thread, target, python, total, tid, 0);
        }
        // What it has waited for since, as to get other locks of its own back, has counted.
        if (target->spins && (thread->wanted_ns > park->wanted_ns || !thread->wanted_ns))
            want(thread, target, python, park->address,
                 park->wanted_ns > thread->counted_until_ns ? park->wanted_ns
                                                            : thread->counted_until_ns);
        if (!thread->is_counted) {
            tell_again(thread, target, python, park->address);
            thread->stacks[WANTS_MUTEX] = place(thread, python, tid);
        }
        if (is_rlock(thread, target) && !read_u64(&number, thread->tstate + python->thread_id) &&
            number)
            note_sleeper(thread, tid, semaphore, number, now);
    } else {
        thread->kinds[WANTS_OTHER] =
            park->is_bucket ? SLEEP_INTERPRETER : other_kind(target, thread->tstate, park->address);
        // Before its stack is walked: it may be woken meanwhile.
        if (thread->kinds[WANTS_OTHER] == SLEEP_STOPPED)
            note_sleeper(thread, tid, semaphore, 0, now);
        thread->stacks[WANTS_OTHER] = place(thread, python, tid);
        if (thread->kinds[WANTS_OTHER] == SLEEP_STOPPING)
            ask_to_stop(thread, target, python, now);
    }
    thread->semaphore = semaphore;
    thread->asleep_ns = now_ns();
    return 0;
}

// The call that puts a thread to sleep for a lock of the older kind.
int on_semaphore(struct pt_regs *ctx)
{
    u64 now = now_ns(), ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct python *python = pythons.lookup(&tgid);
    struct thread *thread;

    if (!target || !python || !trapped(target, tgid, now, PROGRAM_ON_SEMAPHORE))
        return 0;
    thread = current_thread(target, tgid, tid);
    if (!thread)
        return 0;
    find_tstate(thread, python, tid);
    thread->sleeps_for = WANTS_OTHER;
    thread->kinds[WANTS_OTHER] = SLEEP_SEMAPHORE;
    thread->stacks[WANTS_OTHER] = place(thread, python, tid);
    thread->semaphore = PT_REGS_PARM1(ctx);
    thread->asleep_ns = now_ns();
    return 0;
}

// The stack of who has woken the thread; 0: it is not known.
static __always_inline u64 released_by(const struct thread *thread)
{
    struct wake_key key = {.semaphore = thread->semaphore, .tgid = thread->tgid};
    struct wake *wake = wakes.lookup(&key);
    u64 stack = 0;

    // The same place of its stack may have been a semaphore before, and in an earlier window.
    if (wake && wake->at_ns >= thread->wanted_ns && wake->at_ns >= thread->window_ns)
        stack = wake->stack;
    if (wake)
        wakes.delete(&key);
    return stack;
}

static __always_inline void wake(struct thread *thread, const struct target *target, u32 tid,
                                 u64 now)
{
    u64 slept_ns = now - thread->asleep_ns, stack = released_by(thread);

    thread->asleep_ns = 0;
    if (thread->sleeps_for != WANTS_MUTEX) {
        thread->released[WANTS_OTHER] = stack;
        if (thread->kinds[WANTS_OTHER] == SLEEP_STOPPING)
            wait_to_stop(thread, stack != 0, now);
        else
            queue_to_stop(thread, target, now);
        count_wait(thread, tid, WANTS_OTHER, slept_ns, slept_ns, 1, now);
        return;
    }
    thread->released[WANTS_MUTEX] = stack;
    queue_to_stop(thread, target, now);
    count_wait(thread, tid, WANTS_MUTEX, uncounted_ns(thread, now), slept_ns, !thread->is_counted,
               now);
    thread->is_counted = 1;
}

// What follows each of these calls.
int on_woken(struct pt_regs *ctx)
{
    u64 now = now_ns(), ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct thread *thread;

    if (!target || !trapped(target, tgid, now, PROGRAM_ON_WOKEN))
        return 0;
    thread = current_thread(target, tgid, tid);
    if (!thread)
        return 0;
    if (thread->asleep_ns)
        wake(thread, target, tid, now);
    else if (target->is_whole && thread->traps == 1) // else it has come by two of these places
        lose(tgid, LOST_BEGAN_UNSEEN);
    return 0;
}

// The call that wakes a thread, which may not have fallen asleep yet: it finds this when it wakes.
int on_wake(struct pt_regs *ctx)
{
    u64 now = now_ns(), ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct wake_key key = {.semaphore = PT_REGS_PARM1(ctx), .tgid = tgid};
    struct python *python = pythons.lookup(&tgid);
    struct wake wake = {};
    struct thread *thread;
    struct wake *asleep;
    struct work *work;
    u64 stopped_ns = 0, state = 0;

    if (!target || !python || !trapped(target, tgid, now, PROGRAM_ON_WAKE))
        return 0;
    thread = current_thread(target, tgid, tid);
    work = thread ? own_work(tid) : 0;
    if (!work)
        return 0;
    find_tstate(thread, python, tid);
    wake.stack = own_stack(work, thread, python);
    asleep = wakes.lookup(&key);
    if (asleep && asleep->asleep_ns >= target->from_ns) {
        if (asleep->number)
            note_hand_over(tgid, key.semaphore, asleep, now_ns());
        else
            stopped_ns = asleep->asleep_ns;
    }
    state = stopped_state(target, python, thread->tstate, key.semaphore, stopped_ns > 0);
    wake.at_ns = now_ns();
    if (wakes.update(&key, &wake))
        lose(tgid, LOST_TABLE_FULL);
    if (stopped_ns || state)
        start_world(thread, target, python, stopped_ns, state, wake.stack, wake.at_ns);
    return 0;
}
