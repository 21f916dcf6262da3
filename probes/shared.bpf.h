// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What the probes of the GIL and those of STM have in common.

#include <uapi/linux/bpf.h>
#include <uapi/linux/ptrace.h>
#include <uapi/linux/sched.h>

#ifndef MAX_LOSSES
#error "the size of lost_events must be given"
#endif

#define HISTOGRAM_SLOTS 36 // slot k: 2^(k-1) < ns <= 2^k; the last one takes the rest

// The kernel's helpers bpf_probe_read_user and bpf_probe_read_user_str, both of Linux 5.5. Where
// they are called by these names, BCC 0.26 looks through all symbols of the kernel to see whether
// they exist: that took 0.6 of the 1.6 s in which it compiled the programs on the GIL.
static int (*read_user)(void *to, u32 size, const void *from) = (void *)BPF_FUNC_probe_read_user;
static int (*read_user_str)(void *to, u32 size,
                            const void *from) = (void *)BPF_FUNC_probe_read_user_str;

// CLOCK_MONOTONIC as the agent reads it: a time namespace may shift that.
static __always_inline u64 now_ns(void)
{
#ifdef CLOCK_OFFSET_NS
    return bpf_ktime_get_ns() + (s64)(CLOCK_OFFSET_NS);
#else
    return bpf_ktime_get_ns();
#endif
}

// Process and thread id as the agent sees them: tgid in the upper half, tid in the lower.
static __always_inline u64 current_ids(void)
{
#ifdef PID_NAMESPACE_INODE
    struct bpf_pidns_info ids = {};

    if (bpf_get_ns_current_pid_tgid(PID_NAMESPACE_DEVICE, PID_NAMESPACE_INODE, &ids, sizeof(ids)))
        return 0; // a process of another pid namespace, which the agent cannot name
    return (u64)ids.tgid << 32 | ids.pid;
#else
    return bpf_get_current_pid_tgid();
#endif
}

// bpf_log2l(v) is 1 + floor(log2 v), so of v - 1 it is the exact ceiling of log2 v.
static __always_inline u32 slot_of_ns(u64 ns)
{
    u32 slot = ns > 1 ? bpf_log2l(ns - 1) : 0;

    return slot < HISTOGRAM_SLOTS ? slot : HISTOGRAM_SLOTS - 1;
}

// Adds *ns* to a sum and to the slots of a histogram, which several threads may do at once.
static __always_inline void count_ns(u64 *sum_ns, u64 *slots, u64 ns)
{
    __sync_fetch_and_add(sum_ns, ns);
    __sync_fetch_and_add(&slots[slot_of_ns(ns)], 1);
}

struct lost_key {
    u32 tgid;
    u32 reason;
};

BPF_F_TABLE("hash", struct lost_key, u64, lost_events, MAX_LOSSES, TABLE_FLAGS);

static __always_inline void lose(u32 tgid, u32 reason)
{
    struct lost_key key = {.tgid = tgid, .reason = reason};
    u64 zero = 0;
    u64 *count = lost_events.lookup_or_try_init(&key, &zero);

    if (count)
        __sync_fetch_and_add(count, 1);
}
