// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Waits for PyPy's GIL, seen on the contended path only.
//
//   wait        = taken - needed
//     needed    a thread enters the slow path of taking it; or it is about to give it away because
//               others wait, and takes its place behind them
//     taken     the slow path is left, with the GIL
//   convoy wait = a wait after a blocking call that lasted at least CONVOY_NS
//
// The lock is a word: 0, or the holder's pthread_self(). Whoever finds it taken queues for a mutex;
// the first of the queue looks every 0.1 ms whether the word is 0, and takes it then, "steals" it.
// So the lock is never asked for. The holder counts bytecodes, and after some thousands gives it
// away if anybody waits; that wakes the first of the queue.
//
// Sites: the first instruction of the slow path that is cheap to probe, where the stack is still
// known; the first call of its end; and the call in the yield that is made only if somebody waits.
// What takes or drops a lock that nobody else wants is a single instruction in hundreds of places
// and in code that the JIT has made: it is never seen.
//
// One wait spans all who take the lock in turn meanwhile. Whoever takes it notes its stack and the
// time, which it does with the GIL held; at its end a wait is shared out among those turns.

#define TURNS_IN_A_RUN 4

static __always_inline void note_turn(const struct gil_key *key, const struct blame *blame, u64 now)
{
    struct turns *all = turns.lookup((struct gil_key *)key);
    u32 zero = 0;

    if (!all) {
        struct turns *empty = empty_turns.lookup(&zero);

        if (empty)
            all = turns.lookup_or_try_init((struct gil_key *)key, empty);
    }
    if (!all) {
        lose(key->tgid, LOST_TABLE_FULL);
        return;
    }
    u32 at = all->count & (TURNS - 1);

    all->began_ns[at] = now;
    all->holders[at] = blame && blame->waiter != STACK_NONE && blame->waiter != STACK_UNSAMPLED
                           ? blame->waiter
                           : STACK_UNKNOWN;
    all->count++;
}

// Shares a wait that ends out among those who have taken the lock since it began; the last of them
// is left for the end of the wait. What the verifier has to check multiplies, so that some turns
// are another run of this program.
int share_out(struct pt_regs *ctx)
{
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct blame *blame = blames.lookup(&tid);
    struct thread *thread = threads.lookup(&tid);

    if (!blame || !thread)
        return 0;
    struct gil_key key = {.cond = thread->cond, .tgid = tgid};
    struct turns *all = turns.lookup(&key);
    u64 ended_ns = thread->ending_ns;
    u32 kind = kind_of_wait(thread->cause, thread->interval_ns, ended_ns - blame->wait_started_ns);

    BEGIN_CHANGE(blame);
#pragma clang loop unroll(disable)
    for (u32 step = 0; step < TURNS_IN_A_RUN; step++) {
        if (!all || blame->turn >= TURNS)
            break;
        u32 at = (all->count + blame->turn) & (TURNS - 1);
        u64 began_ns = all->began_ns[at];
        int is_oldest = !blame->turn++;

        if (began_ns <= blame->slice_began_ns || began_ns > ended_ns)
            continue;
        if (is_oldest && all->count > TURNS)
            blame->first_holder = STACK_UNKNOWN; // others may have had it before
        // Where nobody was seen to hold it before, it came to be this one's.
        if (blame->first_holder) {
            charge(tgid, kind, blame->waiter, blame->first_holder, began_ns - blame->slice_began_ns,
                   1);
            blame->slice_began_ns = began_ns;
        }
        blame->first_holder = all->holders[at];
    }
    if (!all || blame->turn >= TURNS) {
        blame->holder = blame->first_holder ? blame->first_holder : STACK_UNKNOWN;
        blame->is_new_holder = 1;
    }
    END_CHANGE(blame);
    if (!blame->holder)
        next_program.call(ctx, SHARE_OUT);
    note_turn(&key, blame, ended_ns);
    next_program.call(ctx, END_WAIT);
    return 0;
}

// The entry of the slow path.
int on_turn_wait(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = trapped(tgid);
    struct pypy *pypy = pypys.lookup(&tgid);

    if (!target || !pypy)
        return 0;
    struct gil_key key = {.cond = pypy->lock, .tgid = tgid};
    struct thread *thread = current_thread(tgid, tid);
    struct gil *gil = thread ? known_gil(&key) : 0;

    if (!thread || !gil)
        return 0;
    u32 cause = cause_of_wait(ctx, target);
    u64 started_ns = now;

    if (cause == AFTER_PREEMPTION && thread->given_ns)
        started_ns = thread->given_ns;
    thread->interval_ns = gil->interval_ns = CONVOY_NS;
    if (!thread->wait_started_ns) // else the end of its last wait was not seen
        __sync_fetch_and_add(&gil->waiting, 1);
    begin_wait(thread, key.cond, started_ns, cause);
    struct blame *blame = begin_blame(target, thread, tid, 0, started_ns, cause);

    if (blame && !blame->waiter)
        next_program.call(ctx, WALK_TURN);
    return 0;
}

// The second half of that: reads both stacks.
int walk_turn(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct blame *blame = blames.lookup(&tid);
    struct thread *thread = threads.lookup(&tid);
    struct pypy *pypy = pypys.lookup(&tgid);
    struct python *python = pythons.lookup(&tgid);

    if (!blame || !thread || !pypy || !python)
        return 0;
    blame->walking_since_ns = now;
    u64 own = pypy_thread(blame, pypy, own_tid(python, tid));

    blame->found = own ? pypy_stack(blame, pypy, python, own) : STACK_UNKNOWN;
    if (!own)
        lose(tgid, LOST_STACK_UNKNOWN);
    blame->waiter = blame->unread ? blame->unread : blame->found;
    if (thread->stack <= STACK_UNSAMPLED)
        thread->stack = blame->found;
    if (blame->unread)
        note_walking_time(blame, tgid);
    else
        next_program.call(ctx, WALK_TURN_HOLDER);
    return 0;
}

int walk_turn_holder(struct pt_regs *ctx)
{
    u64 ids = current_ids(), holder = 0, known = 0;
    u32 tgid = ids >> 32, tid = ids;
    struct blame *blame = blames.lookup(&tid);
    struct pypy *pypy = pypys.lookup(&tgid);
    struct python *python = pythons.lookup(&tgid);

    if (!blame || !pypy || !python)
        return 0;
    // While it is handed over the word names somebody who has had it.
    if (!read_u64(&holder, pypy->lock) && holder) {
        u64 thread = holder + pypy->thread_of_ident;

        if (thread != blame->tstate && !read_u64(&known, thread + pypy->thread_ident) &&
            known == holder)
            blame->first_holder = pypy_stack(blame, pypy, python, thread);
    }
    note_walking_time(blame, tgid);
    return 0;
}

// call pthread_mutex_unlock at the end of the slow path: this thread has the GIL.
int on_turn_taken(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = trapped(tgid);
    struct thread *thread = target ? threads.lookup(&tid) : 0;

    if (!target)
        return 0;
    if (!thread) {
        if (current_thread(tgid, tid))
            lose(tgid, LOST_BEGAN_UNSEEN);
        return 0;
    }
    if (!thread->wait_started_ns)
        return 0; // its beginning was lost, and counted as that
    struct gil_key key = {.cond = thread->cond, .tgid = tgid};
    struct blame *blame = blames.lookup(&tid);
    u64 started_ns = thread->wait_started_ns;

    if (blame && blame->wait_started_ns == started_ns && !blame->unread) {
        thread->ending_since_ns = started_ns;
        thread->ending_ns = now;
        thread->ending_cause = thread->cause;
        blame->turn = 0;
        next_program.call(ctx, SHARE_OUT);
    }
    note_turn(&key, blame, now);
    end_wait_in_program(ctx, thread, started_ns, now, thread->cause);
    return 0;
}

// call pthread_mutex_lock in the yield: the holder gives the GIL to who waits for it.
int on_turn_given(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct pypy *pypy = pypys.lookup(&tgid);
    struct thread *thread = trapped(tgid) && pypy ? current_thread(tgid, tid) : 0;

    if (!thread || !pypy)
        return 0;
    // It may yet take it back at once: only if it has to wait is this when that began.
    thread->given_ns = now;
    return 0;
}
