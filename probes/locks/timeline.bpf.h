// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The timeline: each part of a wait, and of a stop of the world, by itself as it counts, where it
// was asked for (TIMELINE).
//
// The one thing that streams. A span that finds the ring full is dropped and counted: nothing ever
// waits for user space, which looks into the ring some twenty times a second, unasked.

// struct span
BPF_RINGBUF_OUTPUT(spans, ENTRIES(spans));

// A span of the last *ns*, of which the rest is to be filled in; 0: none is wanted, or has room.
static __always_inline struct span *new_span(const struct thread *thread, u32 kind, u64 ns, u64 now)
{
    if (!PARAMETER(TIMELINE) || !is_within_budget(now))
        return 0;
    struct span *span = spans.ringbuf_reserve(sizeof(*span));

    if (!span) {
        lose(thread->tgid, LOST_SPAN);
        return 0;
    }
    span->began_ns = now - ns;
    span->ended_ns = now;
    span->tgid = thread->tgid;
    span->kind = kind;
    __builtin_memset(span->type, 0, sizeof(span->type));
    return span;
}

static __always_inline void send_wait(const struct thread *thread, u32 tid, u32 what, u64 wait_ns,
                                      u64 now)
{
    // Of a moment it is shown who waits for others, and not who has nothing to do.
    if (PARAMETER(SPANS_A_SECOND) && what && thread->kinds[WANTS_OTHER] == SLEEP_EVENT)
        return;
    struct span *span = new_span(thread, SPAN_WAIT, wait_ns, now);

    if (!span)
        return;
    span->stack = what ? thread->stacks[WANTS_OTHER] : thread->stacks[WANTS_MUTEX];
    span->released = what ? thread->released[WANTS_OTHER] : thread->released[WANTS_MUTEX];
    span->held = what ? 0 : thread->held;
    span->tid = tid;
    span->reason = what ? thread->kinds[WANTS_OTHER] : thread->kinds[WANTS_MUTEX];
    if (what == WANTS_MUTEX)
        __builtin_memcpy(span->type, thread->type, sizeof(span->type));
    spans.ringbuf_submit(span, BPF_RB_NO_WAKEUP);
}

static __always_inline void send_stop(const struct thread *thread, u32 kind, u64 ns, u64 now)
{
    struct span *span = new_span(thread, kind, ns, now);

    if (!span)
        return;
    span->stack = thread->stop_stack;
    span->released = 0;
    span->held = 0;
    span->tid = current_ids();
    span->reason = thread->stop_is_collection;
    spans.ringbuf_submit(span, BPF_RB_NO_WAKEUP);
}
