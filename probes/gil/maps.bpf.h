// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The tables and rings that the programs share with user space, and with one another.

// Filled by user space, one entry a traced process; an exec empties its entry.
BPF_F_TABLE("hash", u32, struct target, targets, MAX_TARGETS, TABLE_FLAGS);
// One entry a lock. Full: waits on further locks are lost as TABLE_FULL.
BPF_F_TABLE("hash", struct gil_key, struct gil, gils, MAX_GILS, TABLE_FLAGS);
BPF_F_TABLE("hash", struct gil_key, struct drop_request, drop_requests, MAX_GILS, TABLE_FLAGS);
// One entry a thread that has ever waited, kept until user space has counted a dead one.
BPF_F_TABLE("hash", u32, struct thread, threads, MAX_THREADS, TABLE_FLAGS);
BPF_F_TABLE("hash", struct histogram_key, struct histogram, histograms, 4 * MAX_GILS, TABLE_FLAGS);
// Filled by user space, a few entries a file.
BPF_F_TABLE("hash", struct caller_key, struct caller_rule, callers, MAX_CALLER_RULES, TABLE_FLAGS);
// Libc method only, a handful a process.
BPF_F_TABLE("hash", struct return_site_key, struct return_site, return_sites, MAX_GILS,
            TABLE_FLAGS);
// One entry a GIL in full mode; user space gives out the slots, and empties them before use.
BPF_ARRAY(locks, struct lock, MAX_LOCKS);
// One entry a process, at the slot of its first lock.
BPF_ARRAY(windows, struct window, MAX_LOCKS);
// The slots of the locks of further interpreters that have their own.
BPF_F_TABLE("hash", struct gil_key, u32, other_locks, MAX_GILS, TABLE_FLAGS);
// Filled by user space, one entry a process whose stacks are read.
BPF_F_TABLE("hash", u32, struct python, pythons, MAX_TARGETS, TABLE_FLAGS);
// Filled by user space, one entry a process that runs PyPy.
BPF_F_TABLE("hash", u32, struct pypy, pypys, MAX_TARGETS, TABLE_FLAGS);
// One entry a process that runs PyPy, whose lock has been waited for.
BPF_F_TABLE("hash", struct gil_key, struct turns, turns, MAX_TARGETS, TABLE_FLAGS);
// Filled by user space, one entry a process whose lock is a semaphore.
BPF_F_TABLE("hash", u32, struct semaphore, semaphores, MAX_TARGETS, TABLE_FLAGS);
// The share of a process' waits whose stacks are read, less one, in 2^32. Written by user space.
BPF_ARRAY(stack_shares, u32, MAX_LOCKS);
// By slot.
BPF_ARRAY(returned, struct returned, MAX_LOCKS);
// One entry a thread that has waited, until its end.
BPF_F_TABLE("hash", u32, struct blame, blames, MAX_BLAMES, TABLE_FLAGS);
// What new entries are copied from: too large for a program's stack.
BPF_ARRAY(empty_blame, struct blame, 1);
BPF_ARRAY(empty_turns, struct turns, 1);
BPF_ARRAY(empty_histogram, struct histogram, 1);
// The stacks that user space has been sent; one that falls out is sent again.
BPF_TABLE("lru_hash", struct stack_key, u8, sent_stacks, MAX_STACKS);
BPF_F_TABLE("hash", struct edge_key, struct edge, edges, MAX_EDGES, TABLE_FLAGS);
BPF_F_TABLE("hash", struct slow_drop_key, struct slow_drop, slow_drops, MAX_EDGES, TABLE_FLAGS);
BPF_ARRAY(settings, struct settings, 1);
BPF_PROG_ARRAY(next_program, NEXT_PROGRAMS);
// struct stack
BPF_RINGBUF_OUTPUT(stacks, STACK_PAGES);
// struct notice
BPF_RINGBUF_OUTPUT(notices, NOTICE_PAGES);
