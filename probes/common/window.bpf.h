// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The window in which a process is observed, and what its traps cost. To be included after the
// tables `targets`, whose records say when the window is open and what a trap is taken to cost, and
// `totals`, whose records say how often a process was trapped and what that has cost, and after
// `notices`.

static __always_inline int is_inside(const struct target *target, const struct totals *total,
                                     u64 now)
{
    return now >= target->from_ns && now < target->until_ns && total->ended_ns < target->from_ns;
}

// Counts a trap of *program*. Returns what is counted of the process, or 0 where nothing is to be
// counted now: no window is open, or it runs another program by now.
static __always_inline struct totals *trapped(const struct target *target, u32 tgid, u64 now,
                                              u32 program)
{
    struct totals *total = target ? totals.lookup(&tgid) : 0;

    if (!total)
        return 0;
    int is_stepped = target->stepped_programs >> program & 1;

    __sync_fetch_and_add(&total->traps, 1);
    __sync_fetch_and_add(&total->cost_ns, is_stepped ? target->stepped_trap_ns : target->trap_ns);
    if (!is_inside(target, total, now))
        return 0;
    if (total->cost_ns >= target->stop_at_cost_ns) {
        struct notice notice = {.tgid = tgid};

        total->ended_ns = now;
        // Nothing is missed where there is no room: user space reads again within seconds anyway.
        notices.ringbuf_output(&notice, sizeof(notice), BPF_RB_FORCE_WAKEUP);
        return 0;
    }
    return total;
}
