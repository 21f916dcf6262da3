// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Waits for the GIL, seen on the contended path only: an acquire or release that nobody waits for
// never meets a probe.
//
//   wait         = taken - needed
//     needed     a thread calls the timed wait in take_gil; or the evaluation loop is about to give
//                the GIL away because it was asked to; or a thread that gives it up for a blocking
//                call falls asleep on switch_cond, because it was asked to just then
//     taken      the timed wait has returned and `locked` is 0: this thread holds the mutex and
//                acquires the GIL in its next instructions; or the evaluation loop continues; or
//                the sleep on switch_cond is over
//   drop request = a timed wait ran out and neither `locked` nor `switch_number` has changed
//   drop latency = first sign of the drop - first unanswered request
//   convoy wait  = a wait after a blocking call that lasted at least one switch interval
//
// Sites: `call pthread_cond_timedwait` and the jump behind it in take_gil; the call in the
// evaluation loop that drops the GIL, and where the loop continues; `call pthread_cond_wait` and
// the jump behind it in drop_gil and its inlined copies. The GIL's mutex is held at the first two,
// so all that they read of the lock is consistent.
//
// Not seen: acquires that did not have to wait, so no holds; the part of a wait before the probe
// was attached (counted as LOST_BEGAN_UNSEEN).

static __always_inline int read_gil(const struct target *target, u64 cond, struct gil_state *state)
{
    if (!target->is_scattered)
        return read_user(state, sizeof(*state), (void *)(cond - GIL_STATE_OFFSET));
    return read_user(&state->interval_us, 8, (void *)(cond + target->interval_at)) ||
           read_user(&state->last_holder, 8, (void *)(cond + target->holder_at)) ||
           read_user(&state->locked, 4, (void *)(cond + target->locked_at)) ||
           read_user(&state->switch_number, 8, (void *)(cond + target->number_at));
}

// Steps from a program counter up to the function that wanted the GIL, by rules made from
// .eh_frame.
static __always_inline u32 cause_at(const struct target *target, u64 pc, u64 sp, u64 fp)
{
    struct caller_key key = {.file_id = target->file_id};

    if (!(target->flags & TARGET_KNOWS_CALLERS))
        return AFTER_UNKNOWN;
#pragma unroll
    for (int depth = 0; depth < MAX_CALLER_DEPTH; depth++) {
        key.pc = pc - target->load_bias;
        struct caller_rule *rule = callers.lookup(&key);

        if (!rule)
            return depth ? AFTER_BLOCKING_CALL : AFTER_UNKNOWN;
        if (rule->made_to_yield)
            return AFTER_PREEMPTION;
        u64 cfa = (rule->cfa_from_fp ? fp : sp) + (s64)rule->cfa_offset;

        if (read_user(&pc, sizeof(pc), (void *)(cfa + (s64)rule->return_at)))
            return AFTER_UNKNOWN;
        pc = without_signature(pc);
        if (rule->saved_fp_offset &&
            read_user(&fp, sizeof(fp), (void *)(cfa + (s64)rule->saved_fp_offset)))
            return AFTER_UNKNOWN;
        sp = cfa;
    }
    return AFTER_BLOCKING_CALL;
}

static __always_inline u32 cause_of_wait(struct pt_regs *ctx, const struct target *target)
{
    return cause_at(target, PT_REGS_IP(ctx), PT_REGS_SP(ctx), PT_REGS_FP(ctx));
}

static __always_inline void count_for_process(u32 tgid, u64 ns)
{
    struct target *target = targets.lookup(&tgid);

    if (!target)
        return;
    __sync_fetch_and_add(&target->seen_wait_ns, ns);
    __sync_fetch_and_add(&target->ended_waits, 1);
}

static __always_inline void finish_wait(struct thread *thread, u32 tid, u64 started_ns,
                                        u64 ended_ns, u32 cause)
{
    struct gil_key key = {.cond = thread->cond, .tgid = thread->tgid};
    struct gil *gil = gils.lookup(&key);
    u64 ns = ended_ns - started_ns;
    u32 kind = kind_of_wait(cause, thread->interval_ns, ns);

    if (!gil) {
        // The thread was preempted before anything had shown which lock it uses.
        thread->forced_drop_ns = 0;
        thread->yield_started_ns = 0;
        thread->wait_started_ns = 0;
        lose(thread->tgid, LOST_LOCK_UNKNOWN);
        return;
    }
    if (kind >= KINDS)
        return; // never; the verifier wants the bound
    BEGIN_CHANGE(thread);
    thread->wait_ns[kind] += ns;
    thread->waits[kind]++;
    if (thread->failed_since_ns)
        thread->failed_wakeup_wait_ns += ended_ns - thread->failed_since_ns;
    thread->failed_since_ns = 0;
    // On the way into a blocking call it has not needed the GIL since then.
    thread->last_wait_started_ns = thread->yield_started_ns ? 0 : started_ns;
    thread->last_wait_ended_ns = ended_ns;
    if (thread->wait_started_ns)
        __sync_fetch_and_add(&gil->waiting, -1);
    thread->forced_drop_ns = 0;
    thread->yield_started_ns = 0;
    thread->wait_started_ns = 0;
    END_CHANGE(thread);
    count_for_process(thread->tgid, ns);
    count_for_region(thread, tid, ns);
    if (kind == CONVOY)
        __sync_fetch_and_add(&gil->convoy_waits, 1);
    if (kind == AFTER_PREEMPTION)
        __sync_fetch_and_add(&gil->forced_switches, 1);
    observe(&key, cause, ns);
    end_blame(thread, gil, tid, started_ns, ended_ns, kind);
    count_for_trace(thread, tid, ns, ended_ns, cause);
}

// Ends the wait of the thread that runs this, in a program of its own: there are many places where
// a wait may end. Does not return.
static __always_inline void end_wait_in_program(struct pt_regs *ctx, struct thread *thread,
                                                u64 started_ns, u64 ended_ns, u32 cause)
{
    thread->ending_since_ns = started_ns;
    thread->ending_ns = ended_ns;
    thread->ending_cause = cause;
    next_program.call(ctx, END_WAIT);
}

int end_wait(struct pt_regs *ctx)
{
    u32 tid = current_ids();
    struct thread *thread = threads.lookup(&tid);

    if (thread && thread->ending_since_ns) {
        u64 started_ns = thread->ending_since_ns;

        thread->ending_since_ns = 0;
        finish_wait(thread, tid, started_ns, thread->ending_ns, thread->ending_cause);
    }
    return 0;
}

// For how long the thread has not needed the GIL before the wait that begins, which it released for
// a call; 0: not known.
static __always_inline u32 time_away(const struct thread *thread, u64 started_ns, u32 cause)
{
    u64 released_ns = thread->released_ns;

    if (cause != AFTER_BLOCKING_CALL || !released_ns || started_ns <= released_ns)
        return 0;
    u64 ns = started_ns - released_ns;

    return ns < LONGEST_AWAY_NS ? ns : LONGEST_AWAY_NS;
}

static __always_inline void begin_wait(struct thread *thread, u64 cond, u64 started_ns, u32 cause)
{
    BEGIN_CHANGE(thread);
    thread->cond = cond;
    thread->wait_started_ns = started_ns;
    thread->cause = cause;
    thread->away_ns = time_away(thread, started_ns, cause);
    thread->released_ns = 0;
    thread->is_told = 0;
    thread->failed_since_ns = 0;
    thread->sleeps = 0;
    END_CHANGE(thread);
}

// Tells user space, once for each wait, that it has lasted as long as user space wants to know of.
static __always_inline void tell_of_long_wait(struct thread *thread, u32 tid, u64 now)
{
    struct settings *common = current_settings();

    if (!common || !common->long_wait_ns || thread->is_told ||
        now < thread->wait_started_ns + common->long_wait_ns)
        return;
    thread->is_told = 1;
    give_notice(NOTICE_LONG_WAIT, thread->tgid, tid);
}

// Whether the caller of a libc wait is probed at the address it will return to. A wait whose end
// would not be seen must not begin.
static __always_inline int returns_to_probe(struct pt_regs *ctx, u32 tgid, u32 tid, u32 is_yield)
{
    struct return_site_key key = {.tgid = tgid};
    struct return_site fresh = {.is_yield = is_yield};

    if (return_address_at_entry(ctx, &key.address)) {
        lose(tgid, LOST_READ_FAULT);
        return 0;
    }
    struct return_site *site = return_sites.lookup(&key);

    if (site && site->probed)
        return 1;
    if (!site) {
        if (!is_within_quota(tgid, QUOTA_RETURN_SITES, PARAMETER(MAX_RETURN_SITES_OF_PROCESS))) {
            lose(tgid, LOST_QUOTA);
            return 0;
        }
        if (!return_sites.insert(&key, &fresh))
            use_quota(tgid, QUOTA_RETURN_SITES, 1);
        give_notice(NOTICE_RETURN, tgid, tid);
    }
    lose(tgid, LOST_RETURN_UNKNOWN);
    return 0;
}

// Why the lock at *key* is not a GIL, or 0.
static __always_inline u32 implausible(const struct target *target, const struct gil_state *state,
                                       u64 cond, u64 mutex)
{
    // Of one that is scattered the address of cond is known, which user space checks.
    if (!target->is_scattered && mutex != cond + GIL_MUTEX_OFFSET)
        return INVALID_MUTEX;
    if (state->locked != 1)
        return INVALID_LOCKED;
    if (state->interval_us == 0 || state->interval_us > MAX_PLAUSIBLE_INTERVAL_US)
        return INVALID_INTERVAL;
    return 0;
}

static __always_inline struct gil *known_gil(struct gil_key *key)
{
    struct gil *gil = gils.lookup(key);
    struct gil fresh = {};

    if (!gil) {
        if (!is_within_quota(key->tgid, QUOTA_GILS, PARAMETER(MAX_GILS_OF_PROCESS))) {
            lose(key->tgid, LOST_QUOTA);
            return 0;
        }
        if (!gils.insert(key, &fresh))
            use_quota(key->tgid, QUOTA_GILS, 1);
        gil = gils.lookup(key);
        if (!gil)
            lose(key->tgid, LOST_TABLE_FULL);
    }
    return gil;
}

static __always_inline void note_lock(struct target *target, u64 cond)
{
    if (!target->cond)
        target->cond = cond;
    else if (target->cond != cond)
        target->cond = MANY_LOCKS;
}

// call pthread_cond_timedwait(cond, mutex, deadline) in take_gil
int on_wait(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = trapped(tgid);

    if (!target)
        return 0;
    struct gil_key key = {.cond = PT_REGS_PARM1(ctx), .tgid = tgid};
    struct gil_state state = {};

    struct thread *thread = current_thread(tgid, tid);

    if (!thread)
        return 0;
    u64 seen_since_ns = last_seen_since(thread);

    // A wait begins twice as well as once; but another trap has come since the last one at its end.
    thread->trapped_at = 0;

    if (is_left_out(target, thread, key.cond, LEFT_OUT_SLEEP, now)) {
        if (read_gil(target, key.cond, &state))
            return 0;
        // Where nobody has taken the lock since then, it is the wait that it was seen in before the
        // probes were out.
        if (seen_since_ns && state.switch_number == thread->saved_switch_number)
            thread->left_out_since_ns = seen_since_ns;
        thread->saved_switch_number = state.switch_number;
        return 0;
    }
    if (read_gil(target, key.cond, &state)) {
        lose(tgid, LOST_READ_FAULT);
        return 0;
    }
    u32 reason = implausible(target, &state, key.cond, PT_REGS_PARM2(ctx));

    if (reason) {
        lose(tgid, reason);
        return 0;
    }
    note_lock(target, key.cond);

    struct gil *gil = known_gil(&key);

    if (!gil)
        return 0;
    gil->interval_ns = state.interval_us * 1000;
    see_answer(&key, state.switch_number, 0, now);
    thread->saved_switch_number = state.switch_number;
    thread->interval_ns = gil->interval_ns;
    if (!thread->wait_started_ns) {
        // A thread that was preempted has needed the GIL since it gave it away.
        begin_wait(thread, key.cond, thread->forced_drop_ns ? thread->forced_drop_ns : now,
                   thread->forced_drop_ns ? AFTER_PREEMPTION : cause_of_wait(ctx, target));
        __sync_fetch_and_add(&gil->waiting, 1);
    } else if (thread->cause == AFTER_UNKNOWN)
        // The next tick of a wait that was first met in the middle.
        thread->cause = cause_of_wait(ctx, target);
    struct blame *blame = blame_holder(target, thread, tid, &state, now);

    if (blame && wants_stack(blame))
        next_program.call(ctx, WALK_STACK);
    return 0;
}

// The entry of pthread_cond_timedwait itself, where the call in take_gil could not be found: the
// GILs are known from the interpreter's own structures, and any other condition variable is none.
int on_libc_wait(struct pt_regs *ctx)
{
    u64 ids = current_ids();
    struct gil_key key = {.cond = PT_REGS_PARM1(ctx), .tgid = ids >> 32};

    if (gils.lookup(&key) && !has_stopped() && returns_to_probe(ctx, key.tgid, ids, 0))
        next_program.call(ctx, ON_WAIT);
    trapped(key.tgid);
    return 0;
}

// A thread whose wait does not count has woken. It may have asked the holder to drop the lock:
// whoever asks next has then not been the first.
static __always_inline void look_at_left_out(struct target *target, struct thread *thread,
                                             u32 result, u64 now)
{
    struct gil_key key = {.cond = thread->cond, .tgid = thread->tgid};
    struct gil_state state = {};

    if (read_gil(target, key.cond, &state))
        return;
    see_answer(&key, state.switch_number, state.locked == 0 || result == 0, now);
    if (!state.locked) {
        end_left_out(target, thread, now);
        return;
    }
    if (result != TIMED_OUT || state.switch_number != thread->saved_switch_number)
        return;
    struct drop_request request = {
        .asked_ns = now,
        .switch_number = state.switch_number,
        .is_left_out = 1,
    };

    drop_requests.insert(&key, &request);
}

// The jump behind that call: eax is its result, the GIL's mutex is held again.
int on_wait_return(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct target *target = trapped(tgid);
    struct gil_state state = {};

    if (!target)
        return 0;
    struct thread *thread = threads.lookup(&tid);

    u64 placed_ns = placed_at(target);

    if (!thread) {
        if (current_thread(tgid, tid) && !placed_ns)
            lose(tgid, LOST_BEGAN_UNSEEN);
        return 0;
    }
    if (is_second_run(target, thread, ctx, now))
        return 0;
    forget_unfollowed(thread, placed_ns);
    if (!thread->wait_started_ns) {
        // It does not count, or its beginning was lost, and counted as that.
        if (thread->left_out)
            look_at_left_out(target, thread, PT_REGS_RC(ctx), now);
        return 0;
    }
    struct gil_key key = {.cond = thread->cond, .tgid = tgid};
    u32 result = PT_REGS_RC(ctx);

    if (read_gil(target, key.cond, &state)) {
        // Whether the wait is over is not known. What it has lasted so far is; if it continues, the
        // rest counts as another one.
        lose(tgid, LOST_READ_FAULT);
        state.locked = 0;
    } else {
        // A wait that did not time out was woken by a release, whoever has acquired the GIL since.
        see_answer(&key, state.switch_number, state.locked == 0 || result == 0, now);
        if (state.locked == 0)
            note_taker(&key, tid, now);
    }
    if (state.locked == 0) {
        end_wait_in_program(ctx, thread, thread->wait_started_ns, now, thread->cause);
        return 0;
    }
    if (result != TIMED_OUT)
        return 0;
    // The holder is sampled now: as soon as it has been asked to drop it, which comes next, it
    // wants the lock's mutex, and must not find it taken.
    struct blame *blame = blame_holder(target, thread, tid, &state, now);

    if (state.switch_number == thread->saved_switch_number) {
        struct gil *gil = gils.lookup(&key);
        struct drop_request request = {
            .asked_ns = now,
            .switch_number = state.switch_number,
            .holder = blame ? blame->unread : STACK_NONE,
        };

        thread->drop_requests++;
        if (gil)
            __sync_fetch_and_add(&gil->drop_requests, 1);
        drop_requests.insert(&key, &request); // keeps the first one that is unanswered
    }
    if (blame && blame->unread == STACK_UNSAMPLED)
        want_slow_holder(thread, blame, &state, drop_requests.lookup(&key), now);
    tell_of_long_wait(thread, tid, now);
    struct drop_request *pending = drop_requests.lookup(&key);

    if (may_be_slow(pending, state.switch_number, thread->interval_ns, now) &&
        contexts.lookup(&tgid)) {
        pending->has_read_trace = 1;
        thread->noting_cond = key.cond;
        thread->long_hold_ns = 0;
        next_program.call(ctx, NOTE_HOLDERS_TRACE);
    }
    if (blame && wants_stack(blame))
        next_program.call(ctx, WALK_STACK);
    return 0;
}
