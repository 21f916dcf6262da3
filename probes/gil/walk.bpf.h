// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The second half of the programs that see a wait begin or continue: it reads the stacks that they
// want.
//
// They jump to walk_stack, and these jump to each other, fifteen times at most of the 33 that
// the kernel allows: one program has 512 bytes of stack only, and what the verifier has to check
// multiplies. Further walks than two are another run of their program, and so is the rest of a long
// search.

#define SEARCH_AGAIN_NS 50000000
#define MOST_WALKING_NS 100000
#define SEARCH_ON_NS 10000000
#define WALKS_IN_A_RUN 2 // who does not move meanwhile needs no third one

// Whether the stack to be read is that of the holder, which may run meanwhile.
static __always_inline int is_holders(const struct blame *blame)
{
    return blame->waiter != STACK_NONE;
}

// The lock whose holder this samples, 0 if none.
static __always_inline struct gil *sampled_gil(const struct blame *blame,
                                               const struct thread *thread)
{
    struct gil_key key = {.cond = thread->cond, .tgid = thread->tgid};

    return is_holders(blame) ? gils.lookup(&key) : 0;
}

// Searches for the state of the thread that runs this.
int find_thread(struct pt_regs *ctx)
{
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct blame *blame = blames.lookup(&tid);
    struct python *python = pythons.lookup(&tgid);
    struct thread *thread = threads.lookup(&tid);

    if (!blame || !python || !thread)
        return 0;
    if (!blame->searches) {
        blame->tstate = 0;
        blame->search_interpreter = 0;
    }
    tid = own_tid(python, tid);
    if (tid)
        search_tstate(blame, python, thread->cond, tid);
    if (blame->search_interpreter && ++blame->searches < MAX_SEARCHES)
        next_program.call(ctx, FIND_THREAD);
    // Not yet at the end of a long list, it continues with a later wait. Of a list that has changed
    // meanwhile the next search may see more.
    blame->search_ns =
        now_ns() + (blame->tstate || blame->search_from ? SEARCH_ON_NS : SEARCH_AGAIN_NS);
    if (blame->tstate)
        blame->search_from = 0;
    blame->has_searched = 1;
    next_program.call(ctx, WALK_STACK);
    return 0;
}

// Begins to read the waiter's stack, or the holder's if the waiter's is known already.
int walk_stack(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct blame *blame = blames.lookup(&tid);
    struct python *python = pythons.lookup(&tgid);
    struct thread *thread = threads.lookup(&tid);

    if (!blame || !thread || !wants_stack(blame))
        return 0;
    if (!blame->walking_since_ns)
        blame->walking_since_ns = now;
    u64 tstate = blame->holder_tstate, frame = 0;
    struct gil *gil = sampled_gil(blame, thread);
    u64 shared = gil ? shared_sample(gil, blame) : STACK_NONE;

    if (shared) {
        blame->found = shared;
        next_program.call(ctx, USE_STACK);
    }
    blame->found = STACK_UNKNOWN;
    if (python && !is_holders(blame)) {
        tstate = known_tstate(blame, python, thread->cond, tid);
        // One that has no frames may be the wrong one of several.
        if (now >= blame->search_ns && !blame->has_searched &&
            (!tstate || innermost_frame(&frame, python, tstate) || !frame)) {
            blame->searches = 0;
            next_program.call(ctx, FIND_THREAD);
        }
    }
    blame->has_searched = 0;
    blame->walked_tstate = tstate;
    blame->walks = 0;
    blame->last_depth = 0;
    if (python && tstate)
        next_program.call(ctx, READ_STACK);
    if (python)
        lose(tgid, LOST_STACK_UNKNOWN);
    if (gil)
        share_sample(gil, blame);
    next_program.call(ctx, USE_STACK);
    return 0;
}

// Walks along the frames, again if need be, and gives what it has come by its id.
int read_stack(struct pt_regs *ctx)
{
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct blame *blame = blames.lookup(&tid);
    struct python *python = pythons.lookup(&tgid);
    struct thread *thread = threads.lookup(&tid);
    int will_do = 0;

    if (!python)
        next_program.call(ctx, USE_STACK); // tracing ends
    if (!blame || !python || !thread)
        return 0;
#pragma clang loop unroll(disable)
    for (int run = 0; run < WALKS_IN_A_RUN && !will_do; run++)
        will_do = walk_will_do(blame, python, is_holders(blame)) || ++blame->walks == MAX_WALKS;
    if (!will_do)
        next_program.call(ctx, READ_STACK);
    blame->found = walked_stack(blame, python);
    struct gil *gil = sampled_gil(blame, thread);

    if (gil)
        share_sample(gil, blame);
    next_program.call(ctx, USE_STACK);
    return 0;
}

// What it costs to read stacks differs from program to program, so it is not estimated.
static __always_inline void note_walking_time(struct blame *blame, u32 tgid)
{
    struct target *target = targets.lookup(&tgid);
    u64 ns = now_ns() - blame->walking_since_ns;

    // It was interrupted, and another thread had the CPU.
    if (ns > MOST_WALKING_NS)
        ns = MOST_WALKING_NS;
    if (target && blame->walking_since_ns)
        __sync_fetch_and_add(&target->walking_ns, ns);
    blame->walking_since_ns = 0;
}

// Puts what comes from now on down to the holder that was found.
static __always_inline void take_holder(const struct thread *thread, struct blame *blame)
{
    struct gil_key key = {.cond = thread->cond, .tgid = thread->tgid};
    struct drop_request *pending = drop_requests.lookup(&key);

    blame->wants_holder = 0;
    if (pending && (!pending->holder || pending->holder == STACK_UNSAMPLED) &&
        pending->switch_number == blame->switch_number)
        pending->holder = blame->found;
    if (blame->is_for_request) {
        // The wait itself stays one whose stacks are not read.
        blame->is_for_request = 0;
        return;
    }
    // Nobody who reads the record is to miss a wait whose holder stays.
    if (blame->holder == blame->found)
        return;
    BEGIN_CHANGE(blame);
    if (blame->holder)
        end_slice(thread, blame, blame->sampled_ns);
    else
        blame->first_holder = blame->found;
    blame->holder = blame->found;
    blame->is_new_holder = 1;
    END_CHANGE(blame);
}

// Gives the stack that was found to the wait.
int use_stack(struct pt_regs *ctx)
{
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct blame *blame = blames.lookup(&tid);
    struct thread *thread = threads.lookup(&tid);

    if (!blame || !thread)
        return 0;
    if (!blame->waiter) {
        blame->waiter = blame->unread ? blame->unread : blame->found;
        // Its first stack is often that of its start, in no Python code, which tells no role.
        if (thread->stack <= STACK_UNSAMPLED)
            thread->stack = blame->found;
        if (blame->slow_drop_ns) {
            note_slow_drop(tgid, blame->found, blame->slow_drop_ns);
            blame->slow_drop_ns = 0;
        }
        if (blame->wants_holder)
            next_program.call(ctx, WALK_STACK);
    } else {
        take_holder(thread, blame);
    }
    note_walking_time(blame, tgid);
    if (blame->ends_wait) {
        u64 started_ns =
            thread->yield_started_ns ? thread->yield_started_ns : thread->forced_drop_ns;

        blame->ends_wait = 0;
        if (started_ns)
            end_wait_in_program(ctx, thread, started_ns, blame->sampled_ns, AFTER_PREEMPTION);
    }
    return 0;
}
