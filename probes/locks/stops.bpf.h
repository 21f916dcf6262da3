// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Stops of the world, seen in the thread that asks for one.
//
//     stopping = from asking for it to the end of its last sleep for the others to stop, of a
//                millisecond at most; none where they have done so at once
//     standing = from then on, or from when the first one sleeps, until the last one is woken
//
// A stop counts when it begins, and what it takes as it goes by: there is nothing in flight.
//
// Where it is known where the world is stopped and started, each stop is seen from its beginning to
// its end. Elsewhere one that finds all others in blocking calls, from which none returns before
// its end, makes nobody sleep: that is not seen. There nothing tells one stop from the next but
// that the last thread to stop wakes the one that asks, who wakes others at the end. Where neither
// happens, as when a thread loses its CPU before it has gone to sleep, time tells them apart.

// Between two of these sleeps, and between a stop and who sleeps for it.
#define SAME_STOP_NS 10000000

static __always_inline u32 is_collecting(const struct thread *thread, const struct target *target,
                                         const struct python *python)
{
    u64 interpreter = 0;
    u32 collecting = 0;

    if (!thread->tstate)
        return 0; // it is one of more than can be searched
    if (read_u64(&interpreter, thread->tstate + python->tstate_interpreter) ||
        read_user(&collecting, sizeof(collecting), (void *)(interpreter + target->gc_collecting)))
        lose(thread->tgid, LOST_READ_FAULT);
    return collecting != 0;
}

// Only one thread of an interpreter stops the world at a time, but there may be several of these.
// What it has taken since ends *now*.
static __always_inline void count_stop(struct thread *thread, u64 is_new, u64 stopping_ns,
                                       u64 standing_ns, u64 now)
{
    struct stop fresh = {};
    struct stop_key key = {
        .stack = thread->stop_stack,
        .tgid = thread->tgid,
        .is_collection = thread->stop_is_collection,
    };
    struct stop *stop = stops.lookup_or_try_init(&key, &fresh);

    if (!stop) {
        lose(thread->tgid, LOST_TABLE_FULL);
        return;
    }
    thread->stop_ns = (is_new ? 0 : thread->stop_ns) + stopping_ns + standing_ns;
    // Of an addition of nothing the compiler makes an atomic "or", which is new in Linux 5.12.
    if (is_new)
        __sync_fetch_and_add(&stop->stops, 1);
    if (stopping_ns)
        __sync_fetch_and_add(&stop->stopping_ns, stopping_ns);
    if (standing_ns)
        __sync_fetch_and_add(&stop->standing_ns, standing_ns);
    if (thread->stop_ns > stop->longest_ns)
        stop->longest_ns = thread->stop_ns;
    if (stopping_ns || standing_ns)
        send_stop(thread, stopping_ns ? SPAN_STOPPING : SPAN_STANDING, stopping_ns + standing_ns,
                  now);
}

static __always_inline void begin_stop(struct thread *thread, const struct target *target,
                                       const struct python *python, u64 stack, u64 from_ns)
{
    thread->stop_stack = stack;
    thread->stop_is_collection = is_collecting(thread, target, python);
    thread->stop_phase = PHASE_STOPPING;
    thread->stop_until_ns = from_ns;
    count_stop(thread, 1, 0, 0, from_ns);
}

// Calls of what stops the world, in the thread that asks for it.
int on_stop(struct pt_regs *ctx)
{
    u64 now = now_ns(), ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct python *python = pythons.lookup(&tgid);
    struct thread *thread;
    struct work *work;
    u64 stack;

    if (!target || !python || !trapped(target, tgid, now, PROGRAM_ON_STOP))
        return 0;
    thread = current_thread(target, tgid, tid);
    if (!thread)
        return 0;
    find_tstate(thread, python, tid);
    // At the end of a program the world is stopped with no Python code that runs: that is no loss.
    work = own_work(tid);
    stack = work ? own_stack(work, thread, python) : 0;
    thread->stop_world = PT_REGS_PARM1(ctx);
    begin_stop(thread, target, python, stack, now_ns());
    return 0;
}

// Calls of what starts it again, in the same thread. Those that it wakes for that come later.
int on_start(struct pt_regs *ctx)
{
    u64 now = now_ns(), ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = targets.lookup(&tgid);
    struct thread *thread;

    if (!target || !trapped(target, tgid, now, PROGRAM_ON_START))
        return 0;
    thread = current_thread(target, tgid, tid);
    if (!thread || !thread->stop_until_ns || thread->stop_phase == PHASE_OVER)
        return 0;
    count_stop(thread, 0, 0, now - thread->stop_until_ns, now);
    thread->stop_until_ns = now;
    thread->stop_phase = PHASE_STANDS;
    return 0;
}

// It has waited for something else. If that was until it could ask for the stop, such as the end of
// another one, its own begins behind that.
static __always_inline void queue_to_stop(struct thread *thread, const struct target *target,
                                          u64 now)
{
    u64 requester = 0, world = thread->stop_world;
    u8 is_requested = 0;

    if (!target->sees_stops || !thread->stop_until_ns || thread->stop_phase != PHASE_STOPPING)
        return;
    if (!thread->tstate)
        return; // whose stop it is cannot be told
    if (read_user(&is_requested, sizeof(is_requested), (void *)(world + STOP_REQUESTED)) ||
        read_u64(&requester, world + STOP_REQUESTER))
        return;
    if (!is_requested || requester != thread->tstate)
        thread->stop_until_ns = now;
}

// It is about to sleep until the others have stopped.
static __always_inline void ask_to_stop(struct thread *thread, const struct target *target,
                                        const struct python *python, u64 now)
{
    u64 until_ns = thread->stop_until_ns;

    if (target->sees_stops)
        return; // it has begun, or has done so before the window
    if (until_ns && thread->stop_phase == PHASE_STOPPING && now - until_ns <= SAME_STOP_NS)
        return;
    begin_stop(thread, target, python, thread->stacks[WANTS_OTHER], now);
}

// It has slept for that; *has_all_stopped* if the last one to stop has woken it.
static __always_inline void wait_to_stop(struct thread *thread, u32 has_all_stopped, u64 now)
{
    if (!thread->stop_until_ns)
        return;
    count_stop(thread, 0, now - thread->stop_until_ns, 0, now);
    thread->stop_until_ns = now;
    if (has_all_stopped)
        thread->stop_phase = PHASE_STANDS;
}

// Whether a thread that is woken now, which has slept since *stopped_ns*, does so for a stop that
// has not counted yet. A thread that is woken before it has been seen to sleep (0) does if this
// stop has woken it before: each is woken once.
static __always_inline int is_next_stop(const struct thread *thread, u64 stopped_ns, u64 state,
                                        u64 now)
{
    u64 latest_ns = thread->stop_until_ns;

    if (!latest_ns)
        return 1;
    if (stopped_ns) // who sleeps after others were woken does so for another stop
        return stopped_ns > latest_ns + (thread->stop_phase == PHASE_OVER ? 0 : SAME_STOP_NS);
    return thread->stop_phase == PHASE_OVER &&
           (state == thread->stop_woke || now - latest_ns > SAME_STOP_NS);
}

// It wakes a thread that has slept since *stopped_ns*, because of a stop that it asked for: the one
// whose thread state says so at *state*.
static __always_inline void start_world(struct thread *thread, const struct target *target,
                                        const struct python *python, u64 stopped_ns, u64 state,
                                        u64 stack, u64 now)
{
    if (target->sees_stops && !thread->stop_until_ns)
        return; // it has begun before the window
    if (!target->sees_stops && is_next_stop(thread, stopped_ns, state, now))
        begin_stop(thread, target, python, stack, stopped_ns ? stopped_ns : now);
    if (thread->stop_phase != PHASE_OVER)
        thread->stop_woke = state;
    count_stop(thread, 0, 0, now - thread->stop_until_ns, now);
    thread->stop_until_ns = now;
    thread->stop_phase = PHASE_OVER;
}
