// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Histograms of durations: each power of two is divided into slots of the same width.

// Values below twice the number of slots of an octave have a slot each. From there on it is the
// highest bit of *ns* - 1 and the few after it that tell the slot: of ns - 1, so that a slot ends
// with the power of two itself.
static __always_inline u64 slot_of_ns(u64 ns)
{
    u64 below = ns - (ns > 0);
    u64 shift = highest_bit(below | 1 << HISTOGRAM_OCTAVE_BITS) - HISTOGRAM_OCTAVE_BITS;
    u64 slot = (shift << HISTOGRAM_OCTAVE_BITS) + (below >> shift);

    // What is compared has to be what is used, not a copy: the verifier may not know them as equal.
    asm volatile("" : "+r"(slot));
    return slot < HISTOGRAM_SLOTS ? slot : HISTOGRAM_SLOTS - 1;
}

// Adds *ns* to a sum and to the slots of a histogram, which several threads may do at once.
static __always_inline void count_ns(u64 *sum_ns, u64 *slots, u64 ns)
{
    __sync_fetch_and_add(sum_ns, ns);
    __sync_fetch_and_add(&slots[slot_of_ns(ns)], 1);
}
