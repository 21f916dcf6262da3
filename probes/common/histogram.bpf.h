// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Histograms of durations, with slots of powers of two.

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
