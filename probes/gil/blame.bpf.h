// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Blame: which stack kept which stack waiting, and for how long.
//
//   slice = the part of a wait from one sample of the holder to the next, or to the wait's end
//   edge  = what the slices of one waiter's stack behind one holder's stack add up to
//
// The holder is sampled when a wait begins, at each time-out of it, and whenever the lock has
// changed hands meanwhile: the GIL's mutex is held there, so `last_holder` is who holds it. The
// part of a wait before the first sample is that holder's too. A wait that ends without any sample,
// because the lock was free again by then, is attributed to who had taken it last.
//
// Whoever holds the lock needs that mutex to release it, and all who wait would sample, one after
// the other. So a sample is good for all of them for an eighth of a switch interval.
//
// Where that costs more than it may, only the stacks of a random sample of the waits are read,
// chosen when a wait begins; the others are attributed to STACK_UNSAMPLED, from beginning to end,
// and user space distributes them. Not so slow drops: they are rare, so the holder's stack is read
// for each of them, shortly before the drop gets slow; or where no waiter woke by then, where
// the thread stands that drops the lock.
//
// The edges of a process add up to the time that its threads have lost. What is not known is
// attributed to STACK_UNKNOWN.

#define SAMPLES_PER_INTERVAL 8
// Entries of a process for holders whose pairs are too many.
#define HOLDERS_ALONE (PARAMETER(MAX_EDGES_OF_PROCESS) / 8)
#define ALWAYS 0x7fffffff

static __always_inline struct blame *current_blame(u32 tgid, u32 tid)
{
    struct blame *blame = blames.lookup(&tid);

    if (blame && blame->tgid == tgid)
        return blame;
    if (blame)
        blames.delete(&tid); // of a thread whose end was not seen
    u32 zero = 0;
    struct blame *empty = empty_blame.lookup(&zero);

    if (!empty)
        return 0;
    if (!is_within_quota(tgid, QUOTA_BLAMES, PARAMETER(MAX_BLAMES_OF_PROCESS))) {
        lose(tgid, LOST_QUOTA);
        return 0;
    }
    if (!blames.insert(&tid, empty))
        use_quota(tgid, QUOTA_BLAMES, 1);
    blame = blames.lookup(&tid);
    if (blame)
        blame->tgid = tgid;
    else
        lose(tgid, LOST_TABLE_FULL);
    return blame;
}

// The thread has ended.
static __always_inline void drop_blame(u32 tgid, u32 tid)
{
    if (!blames.delete(&tid))
        use_quota(tgid, QUOTA_BLAMES, -1);
}

// How many entries a process may have before one more for *key*. Pairs are as many as waiters times
// holders; holders alone are fewer, and what can be changed. What is attributed to no stack always
// has a place: a few entries of each kind.
static __always_inline u32 room_for(const struct edge_key *key)
{
    if (key->waiter & ID_OF_READ_STACK)
        return PARAMETER(MAX_EDGES_OF_PROCESS) - HOLDERS_ALONE;
    return key->holder & ID_OF_READ_STACK ? PARAMETER(MAX_EDGES_OF_PROCESS) : ALWAYS;
}

static __always_inline void charge(u32 tgid, u32 kind, u64 waiter, u64 holder, u64 ns,
                                   u64 stretches)
{
    struct settings *common = current_settings();
    struct edge_key key = {
        .waiter = waiter ? waiter : STACK_UNKNOWN,
        .holder = holder ? holder : STACK_UNKNOWN,
        .tgid = tgid,
        .kind = kind,
        .generation = common ? common->generation : 0,
    };
    struct edge *edge = edges.lookup(&key);

    if (!edge && !is_within_quota(tgid, QUOTA_EDGES, room_for(&key))) {
        lose(tgid, LOST_QUOTA);
        key.waiter = STACK_UNKNOWN;
        edge = edges.lookup(&key);
        if (!edge && !is_within_quota(tgid, QUOTA_EDGES, room_for(&key))) {
            key.holder = STACK_UNKNOWN;
            edge = edges.lookup(&key);
        }
    }
    if (!edge) {
        struct edge zero = {};

        if (!edges.insert(&key, &zero))
            use_quota(tgid, QUOTA_EDGES, 1);
        edge = edges.lookup(&key);
    }
    if (!edge) {
        lose(tgid, LOST_EDGE);
        return;
    }
    __sync_fetch_and_add(&edge->wait_ns, ns);
    __sync_fetch_and_add(&edge->stretches, stretches);
}

static __always_inline void note_slow_drop(u32 tgid, u64 holder, u64 ns)
{
    struct settings *common = current_settings();

    if (!common)
        return;
    struct slow_drop_key key = {
        .holder = holder ? holder : STACK_UNKNOWN,
        .tgid = tgid,
        .generation = common->generation,
    };
    struct slow_drop *slow_drop = slow_drops.lookup(&key);

    if (!slow_drop) {
        struct slow_drop zero = {};
        if (!is_within_quota(tgid, QUOTA_CULPRITS, PARAMETER(MAX_EDGES_OF_PROCESS))) {
            lose(tgid, LOST_QUOTA);
            return;
        }
        if (!slow_drops.insert(&key, &zero))
            use_quota(tgid, QUOTA_CULPRITS, 1);
        slow_drop = slow_drops.lookup(&key);
        if (!slow_drop) {
            lose(tgid, LOST_EDGE);
            return;
        }
    }
    __sync_fetch_and_add(&slow_drop->drop_latency_ns, ns);
    __sync_fetch_and_add(&slow_drop->requests, 1);
    if (ns > slow_drop->longest_ns)
        slow_drop->longest_ns = ns;
}

static __always_inline void charge_kept(struct blame *blame, u32 kind)
{
#pragma clang loop unroll(disable)
    for (u32 at = 0; at < MAX_SLICES; at++) {
        if (!blame->slice_holders[at])
            break;
        charge(blame->tgid, kind, blame->waiter, blame->slice_holders[at], blame->slice_ns[at],
               blame->slice_stretches[at]);
        blame->slice_holders[at] = 0;
        blame->slice_ns[at] = 0;
        blame->slice_stretches[at] = 0;
    }
}

// Keeps a slice until its wait has shown what kind it is of.
static __always_inline void keep_slice(struct blame *blame, u64 ns)
{
    u64 holder = blame->holder;
    u32 place = MAX_SLICES - 1;

#pragma clang loop unroll(disable)
    for (u32 at = 0; at < MAX_SLICES; at++) {
        if (!blame->slice_holders[at] || blame->slice_holders[at] == holder) {
            place = at & (MAX_SLICES - 1);
            break;
        }
    }
    if (blame->slice_holders[place] && blame->slice_holders[place] != holder) {
        // More holders within a switch interval than there is room for.
        lose(blame->tgid, LOST_STACK_UNKNOWN);
        holder = STACK_UNKNOWN;
    }
    blame->slice_holders[place] = holder;
    blame->slice_ns[place] += ns;
    blame->slice_stretches[place] += blame->is_new_holder;
}

static __always_inline u32 kind_of_wait(u32 cause, u64 interval_ns, u64 ns)
{
    return cause == AFTER_BLOCKING_CALL && interval_ns && ns >= interval_ns ? CONVOY : cause;
}

// Ends the slice of the holder that has been blamed so far.
static __always_inline void end_slice(const struct thread *thread, struct blame *blame, u64 now)
{
    u64 ns = now > blame->slice_began_ns ? now - blame->slice_began_ns : 0;
    u32 kind = kind_of_wait(blame->cause, thread->interval_ns, now - blame->wait_started_ns);

    keep_slice(blame, ns);
    if (kind != AFTER_BLOCKING_CALL)
        charge_kept(blame, kind);
    blame->slice_began_ns = now;
    blame->is_new_holder = 0;
}

// What stands for the stacks of a wait that begins, if they are not to be read.
static __always_inline u64 unread_stack(const struct target *target)
{
    u32 slot = target->slot;
    u32 *share = stack_shares.lookup(&slot);

    if (!(target->flags & TARGET_READS_STACKS))
        return STACK_UNKNOWN;
    return share && bpf_get_prandom_u32() > *share ? STACK_UNSAMPLED : STACK_NONE;
}

// A wait has begun. *tstate* is the state of the thread that runs this, 0 if it has to be searched
// for. What its stack is, and who holds the lock, is found out by walk_stack.
static __always_inline struct blame *begin_blame(const struct target *target,
                                                 const struct thread *thread, u32 tid, u64 tstate,
                                                 u64 started_ns, u32 cause)
{
    struct blame *blame = current_blame(thread->tgid, tid);

    if (!blame)
        return 0;
    if (tstate)
        blame->tstate = tstate;
    if (blame->slow_drop_ns) {
        // The wait behind it was never seen to end.
        note_slow_drop(thread->tgid, STACK_UNKNOWN, blame->slow_drop_ns);
        lose(thread->tgid, LOST_STACK_UNKNOWN);
    }
    BEGIN_CHANGE(blame);
    blame->wait_started_ns = started_ns;
    blame->slice_began_ns = started_ns;
    blame->cause = cause;
    blame->unread = unread_stack(target);
    // A thread's first stack is read all the same: it tells its role.
    blame->waiter = blame->unread == STACK_UNSAMPLED && !thread->stack ? STACK_NONE : blame->unread;
    blame->holder = blame->unread;
    blame->first_holder = blame->unread;
    blame->is_new_holder = blame->unread != STACK_NONE;
    blame->holder_tstate = 0;
    // What a wait has left that was never seen to end.
    __builtin_memset(blame->slice_holders, 0, sizeof(blame->slice_holders));
    __builtin_memset(blame->slice_ns, 0, sizeof(blame->slice_ns));
    __builtin_memset(blame->slice_stretches, 0, sizeof(blame->slice_stretches));
    blame->wants_holder = 0;
    blame->is_for_request = 0;
    blame->slow_drop_ns = 0;
    blame->ends_wait = 0;
    blame->has_searched = 0;
    END_CHANGE(blame);
    return blame;
}

// Asks for a sample of who holds the lock, unless that has just been done.
static __always_inline void want_holder(const struct thread *thread, struct blame *blame,
                                        const struct gil_state *state, u64 now, u32 has_mutex)
{
    if (blame->holder && state->last_holder == blame->holder_tstate &&
        state->switch_number == blame->switch_number &&
        now - blame->sampled_ns < thread->interval_ns / 2)
        return;
    blame->holder_tstate = state->last_holder;
    blame->switch_number = state->switch_number;
    blame->sampled_ns = now;
    blame->has_mutex = has_mutex;
    blame->wants_holder = 1;
}

// Asks for a sample of who does not drop the lock, if the drop may be slow by the time that this
// thread wakes again, and its wait is one whose stacks are not read.
static __always_inline void want_slow_holder(const struct thread *thread, struct blame *blame,
                                             const struct gil_state *state,
                                             const struct drop_request *pending, u64 now)
{
    struct settings *common = current_settings();

    if (!common || !pending || pending->holder != STACK_UNSAMPLED ||
        pending->switch_number != state->switch_number ||
        now + thread->interval_ns < pending->asked_ns + common->slow_drop_ns)
        return;
    want_holder(thread, blame, state, now, 1);
    blame->is_for_request = blame->wants_holder;
}

// What the thread's wait in flight is attributed to.
static __always_inline struct blame *blame_of_wait(const struct target *target,
                                                   const struct thread *thread, u32 tid)
{
    struct blame *blame = blames.lookup(&tid);

    if (!blame || blame->tgid != thread->tgid || blame->wait_started_ns != thread->wait_started_ns)
        blame = begin_blame(target, thread, tid, 0, thread->wait_started_ns, thread->cause);
    if (blame)
        blame->cause = thread->cause;
    return blame;
}

// A thread is about to wait, or to wait on, for the lock whose state is given, and whose mutex it
// holds. Which stacks it wants is for wants_stack to say.
static __always_inline struct blame *blame_holder(const struct target *target,
                                                  const struct thread *thread, u32 tid,
                                                  const struct gil_state *state, u64 now)
{
    struct blame *blame = blame_of_wait(target, thread, tid);

    if (blame && !blame->unread)
        want_holder(thread, blame, state, now, 1);
    return blame;
}

// Whether walk_stack has anything to do.
static __always_inline int wants_stack(const struct blame *blame)
{
    return !blame->waiter || blame->wants_holder;
}

// The sample of the holder that another thread has just taken, 0 if there is none that will do.
static __always_inline u64 shared_sample(const struct gil *gil, const struct blame *blame)
{
    if (!blame->has_mutex || gil->sampled_tstate != blame->holder_tstate ||
        gil->sampled_switch_number != blame->switch_number ||
        blame->sampled_ns - gil->sampled_ns > gil->interval_ns / SAMPLES_PER_INTERVAL)
        return STACK_NONE;
    return gil->sampled_stack;
}

static __always_inline void share_sample(struct gil *gil, const struct blame *blame)
{
    if (!blame->has_mutex)
        return;
    gil->sampled_tstate = blame->holder_tstate;
    gil->sampled_switch_number = blame->switch_number;
    gil->sampled_ns = blame->sampled_ns;
    gil->sampled_stack = blame->found;
}

// A thread that has waited is about to take the lock at *key*, whose mutex it holds.
static __always_inline void note_taker(struct gil_key *key, u32 tid, u64 now)
{
    struct gil *gil = gils.lookup(key);
    struct blame *blame = blames.lookup(&tid);

    if (gil && blame) {
        gil->taker = blame->waiter;
        gil->taken_ns = now;
    }
}

// The wait that began at *started_ns* is over.
static __always_inline void end_blame(const struct thread *thread, const struct gil *gil, u32 tid,
                                      u64 started_ns, u64 ended_ns, u32 kind)
{
    struct blame *blame = blames.lookup(&tid);

    if (!blame || blame->tgid != thread->tgid || blame->wait_started_ns != started_ns) {
        charge(thread->tgid, kind, STACK_UNKNOWN, STACK_UNKNOWN, ended_ns - started_ns, 1);
        send_wait(thread, tid, started_ns, ended_ns, kind, STACK_UNKNOWN, STACK_UNKNOWN);
        return;
    }
    BEGIN_CHANGE(blame);
    if (!blame->holder) {
        // Nobody held it any more when this thread sampled it. Who has acquired it meanwhile, after
        // a wait of its own, held it where it had waited.
        blame->holder = gil->taken_ns >= started_ns ? gil->taker : STACK_UNKNOWN;
        blame->first_holder = blame->holder;
        blame->is_new_holder = 1;
    }
    keep_slice(blame, ended_ns > blame->slice_began_ns ? ended_ns - blame->slice_began_ns : 0);
    charge_kept(blame, kind);
    blame->wait_started_ns = 0;
    END_CHANGE(blame);
    send_wait(thread, tid, started_ns, ended_ns, kind, blame->waiter, blame->first_holder);
}
