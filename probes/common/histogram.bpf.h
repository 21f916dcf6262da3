// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Histograms of durations: each power of two is divided into slots, each 9 % wider than the one
// before.

// 1 where *mantissa* has come to the step, without a branch.
#define HAS_COME_TO(step, mantissa) (((step) - 1 - (mantissa)) >> 63)

// Values below twice the number of slots of an octave have a slot each. From there on it is the
// highest bit of *ns* - 1, and what the number is without its size, that tell the slot: of ns - 1,
// so that a slot ends with the power of two itself.
static __always_inline u64 slot_of_ns(u64 ns)
{
    u64 below = ns - (ns > 0), slot = below;

    if (below >> (HISTOGRAM_OCTAVE_BITS + 1)) {
        u64 high = highest_bit(below),
            mantissa = below << (63 - high) >> (63 - HISTOGRAM_STEP_BITS);

        slot = ((high - HISTOGRAM_OCTAVE_BITS + 1) << HISTOGRAM_OCTAVE_BITS) +
               HAS_COME_TO(HISTOGRAM_STEP_1, mantissa) + HAS_COME_TO(HISTOGRAM_STEP_2, mantissa) +
               HAS_COME_TO(HISTOGRAM_STEP_3, mantissa) + HAS_COME_TO(HISTOGRAM_STEP_4, mantissa) +
               HAS_COME_TO(HISTOGRAM_STEP_5, mantissa) + HAS_COME_TO(HISTOGRAM_STEP_6, mantissa) +
               HAS_COME_TO(HISTOGRAM_STEP_7, mantissa);
    }

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
