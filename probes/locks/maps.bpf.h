// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The tables and the ring that the programs share with user space, and with one another.

// Filled by user space, one entry a traced process; an exec takes the first of them away.
BPF_F_TABLE("hash", u32, struct target, targets, ENTRIES(targets), TABLE_FLAGS);
BPF_F_TABLE("hash", u32, struct totals, totals, ENTRIES(totals), TABLE_FLAGS);
BPF_F_TABLE("hash", u32, struct python, pythons, ENTRIES(pythons), TABLE_FLAGS);
// One entry a thread that has waited, kept until user space has counted a dead one.
BPF_F_TABLE("hash", u32, struct thread, threads, ENTRIES(threads), TABLE_FLAGS);
BPF_F_TABLE("hash", struct wake_key, struct wake, wakes, ENTRIES(wakes), TABLE_FLAGS);
BPF_TABLE("lru_hash", struct mutex_key, struct hand_over, hand_overs, ENTRIES(hand_overs));
BPF_F_TABLE("hash", u32, struct work, works, ENTRIES(works), TABLE_FLAGS);
BPF_F_TABLE("hash", struct wait_key, struct wait, waits, ENTRIES(waits), TABLE_FLAGS);
BPF_F_TABLE("hash", struct stop_key, struct stop, stops, ENTRIES(stops), TABLE_FLAGS);
BPF_F_TABLE("hash", struct stack_key, struct stack, stacks, ENTRIES(stacks), TABLE_FLAGS);

// struct notice
BPF_RINGBUF_OUTPUT(notices, ENTRIES(notices));
