// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Whether and when the holder of a GIL has done what a thread that waits has asked it for.

// Whether the holder has changed since it was asked to drop: then the request is answered. The
// delete succeeds for one thread only, so that each request is counted once. Returns the latency of
// a slow drop whose holder nobody has sampled, else 0.
static __always_inline u64 answer_drop_request(struct gil_key *key, u64 switch_number, int dropped,
                                               u64 now)
{
    struct settings *common = current_settings();
    struct drop_request *pending = drop_requests.lookup(key);

    if (!pending || (!dropped && pending->switch_number == switch_number))
        return 0;
    // The request may have come from another CPU after this program had read the clock.
    u64 holder = pending->holder, span = pending->span, asked_ns = pending->asked_ns;
    u32 is_left_out = pending->is_left_out;
    u64 ns = now > asked_ns ? now - asked_ns : 0;
    // Made when the request's trace was read, and taken away by nobody while that is unanswered.
    struct held_trace *trace = held_traces.lookup(&pending->trace);

    if (drop_requests.delete(key) || is_left_out)
        return 0;
    observe(key, DROP_LATENCY, ns);
    if (!common || ns < common->slow_drop_ns)
        return 0;
    if (trace)
        count_in_held_trace(trace, ns, now, span, key->cond);
    if (holder == STACK_UNSAMPLED)
        return ns;
    note_slow_drop(key->tgid, holder, ns);
    return 0;
}

// A drop was slow, and who was asked is not known any more.
static __always_inline void note_slow_drop_of_nobody(u32 tgid, u64 ns)
{
    if (!ns)
        return;
    note_slow_drop(tgid, STACK_UNKNOWN, ns);
    lose(tgid, LOST_STACK_UNKNOWN);
}

// The same for a thread that was not asked itself.
static __always_inline void see_answer(struct gil_key *key, u64 switch_number, int dropped, u64 now)
{
    note_slow_drop_of_nobody(key->tgid, answer_drop_request(key, switch_number, dropped, now));
}

// The same for the thread that was asked. Its stack is read when it waits for the lock itself.
static __always_inline void note_own_slow_drop(struct blame *blame, u32 tgid, u64 ns)
{
    if (!ns)
        return;
    if (!blame || blame->unread == STACK_UNKNOWN) {
        note_slow_drop(tgid, STACK_UNKNOWN, ns);
        return;
    }
    blame->slow_drop_ns = ns;
    blame->waiter = STACK_NONE;
}

// Whether a drop will be slow by the time that the thread wakes again which has waited until *now*,
// and nobody has read yet in which request.
static __always_inline int may_be_slow(const struct drop_request *pending, u64 switch_number,
                                       u64 interval_ns, u64 now)
{
    struct settings *common = current_settings();

    return common && pending && !pending->has_read_trace && !pending->is_left_out &&
           pending->switch_number == switch_number &&
           now + interval_ns >= pending->asked_ns + common->slow_drop_ns;
}
