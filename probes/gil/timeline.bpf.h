// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The timeline: each wait and each hold by itself as it ends, where it was asked for (TIMELINE).
//
// With SPANS_A_SECOND, it is for a picture of one moment: what comes beyond that many in a second
// is not sent, and neither are holds shorter than LEAST_HOLD_NS. Such a second is sent without gaps
// up to where it breaks off, and user space knows it by its number of spans.
//
// The one thing that streams. A span that finds the ring full is dropped and counted: nothing ever
// waits for user space.

// struct span
BPF_RINGBUF_OUTPUT(spans, ENTRIES(spans));
// How many spans there have been, dropped ones included.
BPF_ARRAY(sent_spans, u64, 1);
// Of all processes.
struct span_budget {
    u64 second;
    u64 asked;
};
BPF_ARRAY(span_budget, struct span_budget, 1);

static __always_inline int is_within_budget(const struct span *span)
{
    u32 zero = 0;
    struct span_budget *budget;
    u64 second = span->ended_ns >> SPAN_SECOND_SHIFT;

    if (!PARAMETER(SPANS_A_SECOND))
        return 1;
    budget = span_budget.lookup(&zero);
    if (!budget ||
        (span->kind == SPAN_IS_HOLD && span->ended_ns - span->began_ns < PARAMETER(LEAST_HOLD_NS)))
        return 0;
    if (budget->second != second) {
        budget->second = second;
        budget->asked = 0;
    }
    __sync_fetch_and_add(&budget->asked, 1);
    return budget->asked <= PARAMETER(SPANS_A_SECOND);
}

static __always_inline void send_span(const struct span *span)
{
    if (!is_within_budget(span))
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
