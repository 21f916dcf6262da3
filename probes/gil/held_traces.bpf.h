// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// In which request the lock was kept: long holds, and drops that were slow, by the trace that the
// holder published.

// The entry of *key*, made if there is none; 0: there is no room.
static __always_inline struct held_trace *held_trace_at(struct held_trace_key *key)
{
    struct held_trace *trace = held_traces.lookup(key);
    u32 zero = 0;
    struct held_trace *empty = empty_held_trace.lookup(&zero);

    if (trace || !empty)
        return trace;
    if (is_within_quota(key->tgid, QUOTA_TRACES, PARAMETER(MAX_TRACES_OF_PROCESS))) {
        if (!held_traces.insert(key, empty))
            use_quota(key->tgid, QUOTA_TRACES, 1);
        trace = held_traces.lookup(key);
    }
    if (!trace)
        lose(key->tgid, LOST_TRACE);
    return trace;
}

static __always_inline void count_in_held_trace(struct held_trace *trace, u64 ns, u64 ended_ns,
                                                u64 span, u64 cond)
{
    __sync_fetch_and_add(&trace->ns, ns);
    __sync_fetch_and_add(&trace->times, 1);
    if (ns <= trace->longest_ns)
        return;
    // Holds of one lock end one after the other, and so do drops.
    trace->longest_ns = ns;
    trace->longest_ended_ns = ended_ns;
    trace->longest_span = span;
    trace->longest_cond = cond;
}
