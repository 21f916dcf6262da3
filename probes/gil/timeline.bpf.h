// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The timeline: each wait and each hold by itself as it ends, where it was asked for (TIMELINE).
//
// The one thing that streams. A span that finds the ring full is dropped and counted: nothing ever
// waits for user space.

// struct span
BPF_RINGBUF_OUTPUT(spans, ENTRIES(spans));
// How many spans there have been, dropped ones included.
BPF_ARRAY(sent_spans, u64, 1);
static __always_inline void send_span(const struct span *span)
{
    // A picture has no room for the shortest holds.
    if (PARAMETER(SPANS_A_SECOND) && span->kind == SPAN_IS_HOLD &&
        span->ended_ns - span->began_ns < PARAMETER(LEAST_HOLD_NS))
        return;
    if (!is_within_budget(span->ended_ns))
        return;
    u32 zero = 0;
    u64 *sent = sent_spans.lookup(&zero);

    if (spans.ringbuf_output((void *)span, sizeof(*span), BPF_RB_NO_WAKEUP))
        lose(span->tgid, LOST_SPAN);
    if (!sent)
        return; // never; the verifier wants it
    __sync_fetch_and_add(sent, 1);
    // Spans wake nobody. A notice does, whenever a quarter of the ring may have filled.
    if (*sent % PARAMETER(SPANS_A_NOTICE) == 0)
        give_notice(NOTICE_SPANS, span->tgid, span->tid);
}

static __always_inline void send_wait(const struct thread *thread, u32 tid, u64 began_ns,
                                      u64 ended_ns, u32 kind, u64 waiter, u64 holder)
{
    if (!PARAMETER(TIMELINE))
        return;
    struct span span = {
        .cond = thread->cond,
        .began_ns = began_ns,
        .ended_ns = ended_ns,
        .waiter = waiter,
        .holder = holder,
        .tgid = thread->tgid,
        .tid = tid,
        .kind = kind,
        .away_ns = thread->away_ns,
    };

    send_span(&span);
}

static __always_inline void send_hold(const struct lock *lock, u32 tid, u64 began_ns, u64 held_ns)
{
    if (!PARAMETER(TIMELINE))
        return;
    struct span span = {
        .cond = lock->cond,
        .began_ns = began_ns,
        .ended_ns = began_ns + held_ns,
        .tgid = lock->tgid,
        .tid = tid,
        .kind = SPAN_IS_HOLD,
    };

    send_span(&span);
}
