// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Waits for a lock that is a semaphore of the C library, as in CPython 2.7, seen inside that
// library on the contended path only.
//
//   wait           = acquired - needed
//     needed       sem_wait leaves for its slow path: the lock was held just now
//     acquired     the slow path ends
//   failed wake-up = a thread that waits is about to sleep again: it was woken, and found the lock
//                    taken once more
//   convoy wait    = a wait after a blocking call that lasted at least CONVOY_NS
//
// Those that wait do not ask for the lock. Who has it gives it away at its next tick, after some
// number of bytecodes, and takes it back at once unless another thread is quicker.
//
// Sites: the jump out of sem_wait, and in the function that it leads to the call that sleeps and
// the one that ends it. All semaphores of the process come there; the lock's is known by its
// address.
//
// Who holds it is the thread state that the interpreter calls the current one. Whoever takes the
// lock says so only behind that, so there may be none for an instant: who waits looks again when it
// is about to sleep.

#define SAYS_SO_NS 100000  // from acquiring the lock to saying so, at the most
#define CLEANUP_ARGUMENT 8 // struct _pthread_cleanup_buffer: __routine, __arg

// Whether the semaphore at *address* is the lock. It is read each time: it comes to be with the
// first thread.
static __always_inline int is_lock(const struct semaphore *semaphore, u64 address)
{
    u64 lock = 0;

    return !read_u64(&lock, semaphore->lock_pointer) && lock && lock == address;
}

static __always_inline struct blame *blame_current_thread(const struct target *target,
                                                          const struct semaphore *semaphore,
                                                          const struct thread *thread, u32 tid,
                                                          u64 now)
{
    struct blame *blame = blame_of_wait(target, thread, tid);
    struct gil_state state = {};

    if (!blame || blame->unread)
        return blame;
    if (!read_u64(&state.last_holder, semaphore->holder_pointer) && state.last_holder)
        want_holder(thread, blame, &state, now, 0);
    return blame;
}

// The jump out of sem_wait(semaphore), with the stack as at its entry.
int on_semaphore_wait(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    u64 caller = 0, sp = PT_REGS_SP(ctx);
    struct gil_key key = {.cond = PT_REGS_PARM1(ctx), .tgid = tgid};
    struct target *target = trapped(tgid);
    struct semaphore *semaphore = semaphores.lookup(&tgid);

    if (!target || !semaphore || !is_lock(semaphore, key.cond))
        return 0;
    note_lock(target, key.cond);

    struct thread *thread = current_thread(tgid, tid);
    struct gil *gil = thread ? known_gil(&key) : 0;

    if (!thread || !gil)
        return 0;
    u32 cause = read_u64(&caller, sp)
                    ? AFTER_UNKNOWN
                    : cause_at(target, caller, sp + sizeof(caller), PT_REGS_FP(ctx));

    thread->interval_ns = gil->interval_ns = CONVOY_NS;
    if (!thread->wait_started_ns) // else the end of its last wait was not seen
        __sync_fetch_and_add(&gil->waiting, 1);
    begin_wait(thread, key.cond, now, cause);
    struct blame *blame = blame_current_thread(target, semaphore, thread, tid, now);

    if (blame && wants_stack(blame))
        next_program.call(ctx, WALK_STACK);
    return 0;
}

// A wait that had begun before the probes were there is counted from here on.
static __always_inline void begin_unseen_wait(struct target *target, u64 cond, u32 tgid, u32 tid,
                                              u64 now)
{
    struct gil_key key = {.cond = cond, .tgid = tgid};
    struct thread *thread = current_thread(tgid, tid);
    struct gil *gil = thread ? known_gil(&key) : 0;

    if (!thread || !gil)
        return;
    lose(tgid, LOST_BEGAN_UNSEEN);
    note_lock(target, cond);
    thread->interval_ns = gil->interval_ns = CONVOY_NS;
    __sync_fetch_and_add(&gil->waiting, 1);
    begin_wait(thread, cond, now, AFTER_UNKNOWN);
    thread->sleeps = 1;
}

// The call that sleeps until the semaphore is free.
int on_semaphore_sleep(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = trapped(tgid);
    struct semaphore *semaphore = semaphores.lookup(&tgid);

    if (!target || !semaphore || !is_lock(semaphore, PT_REGS_PARM1(ctx)))
        return 0;
    struct thread *thread = threads.lookup(&tid);

    if (!thread) {
        begin_unseen_wait(target, PT_REGS_PARM1(ctx), tgid, tid, now);
        return 0;
    }
    if (!thread->wait_started_ns)
        return 0; // its beginning was lost, and counted as that
    BEGIN_CHANGE(thread);
    if (thread->sleeps++) {
        thread->failed_wakeups++;
        if (!thread->failed_since_ns)
            thread->failed_since_ns = now;
    }
    END_CHANGE(thread);
    tell_of_long_wait(thread, tid, now);
    struct blame *blame = blame_current_thread(target, semaphore, thread, tid, now);

    if (blame && wants_stack(blame))
        next_program.call(ctx, WALK_STACK);
    return 0;
}

// A wait whose holder had not said yet that it has the lock, at any sample, is attributed to who
// had acquired it just then, after a wait of its own: where that thread had waited. Then this
// thread is the last to have done so.
static __always_inline void note_taken(const struct thread *thread, u32 tid, u64 now)
{
    struct gil_key key = {.cond = thread->cond, .tgid = thread->tgid};
    struct gil *gil = gils.lookup(&key);
    struct blame *blame = blames.lookup(&tid);

    if (!gil || !blame || blame->wait_started_ns != thread->wait_started_ns)
        return;
    if (!blame->holder) {
        int was_then = gil->taken_ns + SAYS_SO_NS >= thread->wait_started_ns;

        BEGIN_CHANGE(blame);
        blame->holder = was_then && (gil->taker & ID_OF_READ_STACK) ? gil->taker : STACK_UNKNOWN;
        blame->first_holder = blame->holder;
        blame->is_new_holder = 1;
        END_CHANGE(blame);
    }
    gil->taker = blame->waiter;
    gil->taken_ns = now;
}

// call _pthread_cleanup_pop(buffer), by which the slow path ends: this thread has the semaphore.
int on_semaphore_taken(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids(), address = 0;
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = trapped(tgid);
    struct semaphore *semaphore = semaphores.lookup(&tgid);

    if (!target || !semaphore)
        return 0;
    if (read_u64(&address, PT_REGS_PARM1(ctx) + CLEANUP_ARGUMENT)) {
        lose(tgid, LOST_READ_FAULT);
        return 0;
    }
    if (!is_lock(semaphore, address))
        return 0;
    struct thread *thread = threads.lookup(&tid);

    if (!thread) {
        if (current_thread(tgid, tid))
            lose(tgid, LOST_BEGAN_UNSEEN);
        return 0;
    }
    if (!thread->wait_started_ns)
        return 0;
    note_taken(thread, tid, now);
    end_wait_in_program(ctx, thread, thread->wait_started_ns, now, thread->cause);
    return 0;
}
