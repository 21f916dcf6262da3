// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The tables and rings that the programs share with user space, and with one another.

// Filled by user space, one entry a traced process; an exec empties its entry.
BPF_F_TABLE("hash", u32, struct target, targets, ENTRIES(targets), TABLE_FLAGS);
// One entry a lock. Full: waits on further locks are lost as TABLE_FULL.
BPF_F_TABLE("hash", struct gil_key, struct gil, gils, ENTRIES(gils), TABLE_FLAGS);
BPF_F_TABLE("hash", struct gil_key, struct drop_request, drop_requests, ENTRIES(drop_requests),
            TABLE_FLAGS);
// One entry a thread that has ever waited, kept until user space has counted a dead one.
BPF_F_TABLE("hash", u32, struct thread, threads, ENTRIES(threads), TABLE_FLAGS);
BPF_F_TABLE("hash", struct histogram_key, struct histogram, histograms, ENTRIES(histograms),
            TABLE_FLAGS);
// Filled by user space, a few entries a file.
BPF_F_TABLE("hash", struct caller_key, struct caller_rule, callers, ENTRIES(callers), TABLE_FLAGS);
// Libc method only, a handful a process.
BPF_F_TABLE("hash", struct return_site_key, struct return_site, return_sites, ENTRIES(return_sites),
            TABLE_FLAGS);
// One entry a GIL in full mode; user space gives out the slots, and puts an empty entry there
// before use. No array: with its histograms an entry takes 4 KiB, and most slots are never given
// out.
BPF_F_TABLE("hash", u32, struct lock, locks, ENTRIES(locks), TABLE_FLAGS);
// One entry a process, at the slot of its first lock.
BPF_ARRAY(windows, struct window, ENTRIES(windows));
// The same.
BPF_ARRAY(wait_windows, struct wait_window, ENTRIES(wait_windows));
// The slots of the locks of further interpreters that have their own.
BPF_F_TABLE("hash", struct gil_key, u32, other_locks, ENTRIES(other_locks), TABLE_FLAGS);
// Filled by user space, one entry a process whose stacks are read.
BPF_F_TABLE("hash", u32, struct python, pythons, ENTRIES(pythons), TABLE_FLAGS);
// Filled by user space, one entry a process that runs PyPy.
BPF_F_TABLE("hash", u32, struct pypy, pypys, ENTRIES(pypys), TABLE_FLAGS);
// One entry a process that runs PyPy, whose lock has been waited for.
BPF_F_TABLE("hash", struct gil_key, struct turns, turns, ENTRIES(turns), TABLE_FLAGS);
// Filled by user space, one entry a process whose lock is a semaphore.
BPF_F_TABLE("hash", u32, struct semaphore, semaphores, ENTRIES(semaphores), TABLE_FLAGS);
// The share of a process' waits whose stacks are read, less one, in 2^32. Written by user space.
BPF_ARRAY(stack_shares, u32, ENTRIES(stack_shares));
// By slot.
BPF_ARRAY(returned, struct returned, ENTRIES(returned));
// One entry a thread that has waited, until its end.
BPF_F_TABLE("hash", u32, struct blame, blames, ENTRIES(blames), TABLE_FLAGS);
// What new entries are copied from: too large for a program's stack.
BPF_ARRAY(empty_blame, struct blame, 1);
BPF_ARRAY(empty_thread, struct thread, 1);
BPF_ARRAY(empty_turns, struct turns, 1);
BPF_ARRAY(empty_histogram, struct histogram, 1);
BPF_ARRAY(empty_trace, struct trace, 1);
BPF_ARRAY(empty_held_trace, struct held_trace, 1);
// The stacks that user space has been sent; one that falls out is sent again.
BPF_TABLE("lru_hash", struct stack_key, u8, sent_stacks, ENTRIES(sent_stacks));
BPF_F_TABLE("hash", struct edge_key, struct edge, edges, ENTRIES(edges), TABLE_FLAGS);
BPF_F_TABLE("hash", struct slow_drop_key, struct slow_drop, slow_drops, ENTRIES(slow_drops),
            TABLE_FLAGS);
// Filled by user space, one entry a process that publishes which requests its threads serve.
BPF_F_TABLE("hash", u32, struct context_place, contexts, ENTRIES(contexts), TABLE_FLAGS);
BPF_F_TABLE("hash", struct trace_key, struct trace, traces, ENTRIES(traces), TABLE_FLAGS);
BPF_F_TABLE("hash", struct held_trace_key, struct held_trace, held_traces, ENTRIES(held_traces),
            TABLE_FLAGS);
BPF_ARRAY(settings, struct settings, 1);
BPF_PROG_ARRAY(next_program, NEXT_PROGRAMS);
// struct stack
BPF_RINGBUF_OUTPUT(stacks, ENTRIES(stacks));
// struct notice
BPF_RINGBUF_OUTPUT(notices, ENTRIES(notices));
