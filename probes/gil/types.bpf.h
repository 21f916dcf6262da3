// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What is kept of processes, locks and threads, and what is sent to user space beside
// gil/abi.bpf.h.
//
// One thread's record is written by that thread alone, and what is known of a lock's holder only by
// who has the lock's mutex, so neither needs atomics; user space reads both while they change, and
// tells a torn copy by `version_begin != version_end`. Whatever several threads write at once is
// added to atomically.

#define TIMED_OUT 110                      // ETIMEDOUT, the result of a wait that saw no signal
#define MAX_PLAUSIBLE_INTERVAL_US 10000000 // sys.setswitchinterval(10): more is not a GIL
#define MANY_LOCKS 1                       // no address: threads have waited for several locks
#define LONGEST_AWAY_NS 0xffffffff         // what is longer is told as that
#define MAX_CALLER_DEPTH 4                 // take_gil, _PyEval_AcquireLock, _Attach, its user
#define MAX_SLICES 8       // holders of a wait whose kind is still open; a power of two
#define TURNS 64           // of a lock that are remembered; a power of two
#define MAX_FRAME_SIZE 128 // what is read of a frame at most

// The part of _gil_runtime_state that lies before cond.
struct gil_state {
    u64 interval_us;
    u64 last_holder;
    u32 locked;
    u32 padding;
    u64 switch_number;
};

struct target {
    u64 load_bias;
    u64 cond;       // the one lock that its threads have waited for so far; 0: none, or MANY_LOCKS
    u64 traps;      // of the programs on the contended path
    u64 walking_ns; // the time that these have spent on stacks
    u64 seen_wait_ns; // of all its threads' finished waits that counted
    u64 ended_waits;  // that its probes have seen the end of, whether they counted or not
    u32 file_id;
    u32 flags;
    u32 slot; // of its first lock in `locks`, of its window, in `stack_shares` and `returned`
    u32 is_scattered; // they are variables, and no members of one structure (CPython 3.6)
    u32 used[QUOTAS]; // entries that the programs have ever made, by enum quota
    // Where the parts of its locks are, from cond.
    s64 interval_at;
    s64 holder_at;
    s64 locked_at;
    s64 number_at;
    s64 switch_cond_at;
};

// How many of these entries user space has taken away. Written by user space.
struct returned {
    u32 entries[QUOTAS];
};

struct gil_key {
    u64 cond;
    u32 tgid;
    u32 padding;
};

struct gil {
    u64 interval_ns;
    u64 convoy_waits;
    u64 forced_switches;
    u64 drop_requests;
    u64 taken_ns; // the last time that a thread took it which had waited,
    u64 taker;    // and the stack that it stood in
    // The last sample of its holder that was taken with its mutex held: all who wait share it.
    u64 sampled_ns;
    u64 sampled_tstate;
    u64 sampled_switch_number;
    u64 sampled_stack;
    u64 waiting; // threads that wait for it now, but for those that have only just been preempted
};

// Where a process keeps a lock that is a semaphore.
struct semaphore {
    u64 lock_pointer;   // address of the pointer to it, which is NULL before the first thread
    u64 holder_pointer; // address of the pointer to the thread state that holds it
};

// In which request a lock was kept.
struct held_trace_key {
    u64 trace_begin;
    u64 trace_end;
    u32 tgid;
    u16 kind; // enum held_trace_kind
    u16 generation;
};

// A drop request that has not been answered yet. Whoever deletes it has answered it.
struct drop_request {
    u64 asked_ns;
    u64 switch_number;
    u64 holder; // the stack of who was asked
    // What the holder served, as another thread has read it shortly before the drop got slow.
    struct held_trace_key trace; // of no trace: none, or not read
    u64 span;
    u32 has_read_trace;
    u32 is_left_out; // by a thread whose wait does not count: nor does the request
};

// Where a process' PyPy keeps its lock, its threads and their frames.
struct pypy {
    u64 lock;            // address of the word
    u64 threads;         // of the head of the list of threads
    s64 thread_of_ident; // from a thread's pthread_self() to its structure
    u32 thread_next;
    u32 thread_ident;
    u32 thread_stack;   // of nodes
    u32 thread_context; // an ExecutionContext
    u32 descriptor_tid;
    u32 context_frame;
    u32 frame_caller;
    u32 frame_code;
    u32 frame_instruction;
    u32 code_number;
    u32 frame_type; // what objects of it begin with
    u32 other_frame_type;
    u32 virtual_type; // of what stands for a frame that is in code made by the JIT
    u32 virtual_forced;
};

// Who has come to hold a lock that is taken in turns, the last TURNS of those that had waited for
// it.
struct turns {
    u64 count;
    u64 began_ns[TURNS];
    u64 holders[TURNS]; // stacks
};

// What keeps a thread waiting, slice by slice: one lasts from one sample of the holder to the next.
// Written by the thread itself alone.
struct blame {
    u64 version_end;
    u64 wait_started_ns; // the wait that all this is about
    u64 slice_began_ns;
    u64 waiter;        // stacks
    u64 holder;        // STACK_NONE: not sampled yet
    u64 holder_tstate; // whose stack that is,
    u64 switch_number; // as of when,
    u64 sampled_ns;
    u64 first_holder; // the stack that the wait was begun behind
    // Slices of a wait that has not shown yet whether it is a convoy.
    u64 slice_holders[MAX_SLICES];
    u64 slice_ns[MAX_SLICES];
    u64 slice_stretches[MAX_SLICES];
    u64 tstate;             // the thread's own, if it was found
    u64 search_ns;          // before this it is not searched for again
    u64 search_from;        // a search has come so far; 0: it begins anew,
    u64 search_interpreter; // or continues behind this one if it is the same search
    u32 tgid;
    u32 cause;
    u32 is_new_holder;  // no slice of this wait has been attributed to it yet
    u32 wants_holder;   // holder_tstate is to be sampled
    u32 ends_wait;      // and then the wait is over
    u32 has_searched;   // for `tstate`, just now
    u32 searches;       // runs of the program that have come before in this search
    u32 is_for_request; // holder_tstate is to be sampled for the drop request alone
    u64 slow_drop_ns;   // that of the drop with which this wait begins, if nobody was sampled; or 0
    u32 turn;           // so many of the lock's have been considered at the end of the wait
    u32 padding;
    u64 unread; // what stands for both stacks of a wait whose stacks are not read; or 0
    u64 version_begin;
    // Working space. It must be the thread's own: a program may be interrupted by another thread's.
    u64 addresses[STACK_DEPTH];
    u64 walked_tstate;
    u64 innermost;
    u64 walk_began_ns;
    u64 last_addresses[STACK_DEPTH];
    u64 last_codes[STACK_DEPTH];
    u32 last_instructions[STACK_DEPTH];
    u64 pointers[MAX_CODE_POINTERS];
    u32 walks; // before this one
    u32 walk;  // enum walk: how it has ended
    u32 last_depth;
    u32 last_state;
    u32 here;
    u32 there;
    u32 common;
    u32 has_mutex; // of the lock, while it samples the holder
    u64 found;     // the stack that was read last
    u64 walking_since_ns;
    u8 frame[MAX_FRAME_SIZE];
    struct stack stack;
};

struct stack_key {
    u64 id;
    u32 tgid;
    u32 attachment;
};

struct edge_key {
    u64 waiter;
    u64 holder;
    u32 tgid;
    u16 kind;
    u16 generation;
};

struct edge {
    u64 wait_ns;
    u64 stretches; // how often a wait came to be this holder's
};

struct slow_drop_key {
    u64 holder;
    u32 tgid;
    u32 generation;
};

struct slow_drop {
    u64 drop_latency_ns;
    u64 requests;
    u64 longest_ns;
};

// Where each thread of a process keeps the variable that leads to its context.
struct context_place {
    s64 offset; // from the thread's descriptor, or from its block of `module`
    u32 module; // 0: of none
    // Of the table of blocks, as the C library makes it.
    u32 entry_size;
    s32 length_at;
    u32 route_key; // one more than the number of the attribute with a request's route; 0: none
};

struct trace_key {
    u64 trace_begin; // the two halves of its id
    u64 trace_end;
    u32 tgid;
    u32 generation;
};

// What the threads of a process have waited in one trace.
struct trace {
    u64 wait_ns;
    u64 waits;
    u64 longest_ns; // of these, when it ended, in which span, and behind which stack it began
    u64 longest_ended_ns;
    u64 longest_span;
    u64 longest_holder;
    u64 longest_cond; // the lock that it was for
    u32 longest_cause;
    u32 padding;
    u8 route[LONGEST_ROUTE]; // as it was published last, with a zero behind it; empty: not known
};

// For how long the threads of a process have kept the lock in one trace: long holds, or slow drops.
struct held_trace {
    u64 ns;
    u64 times;      // 0: the drop was not slow after all, or is not over
    u64 longest_ns; // of these, when it ended, and in which span
    u64 longest_ended_ns;
    u64 longest_span;
    u64 longest_cond;
    u8 route[LONGEST_ROUTE]; // as in struct trace
};

// By what a wait began that does not count.
enum left_out {
    LEFT_OUT_NONE = 0,
    LEFT_OUT_SLEEP = 1,
    LEFT_OUT_DROP = 2, // of a preempted thread: it lasts until that has the lock again
};

// What user space tells all programs.
struct settings {
    u64 slow_drop_ns; // a holder that takes longer to drop it when asked is noted
    u64 long_wait_ns; // user space is told of a wait that lasts so long; 0: of none
    u32 generation;   // of edges, slow_drops and both tables of traces; what an older one holds can
                      // be taken away
    u32 stopped;      // nothing counts any more
};

struct thread {
    u64 version_end;      // a copy runs upwards, so what is written last has to be read first
    u64 cond;             // the GIL that the thread deals with, now or last
    u64 forced_drop_ns;   // 0: not preempted; else when, and the GIL is not back yet
    u64 given_ns;         // the last time that it gave away a lock that is taken in turns
    u64 yield_started_ns; // 0: not asleep in a drop of its own will; else since then
    u64 wait_started_ns;  // 0: not waiting
    u64 saved_switch_number;
    u64 interval_ns;
    u64 last_wait_started_ns;
    u64 last_wait_ended_ns;
    u64 wait_ns[KINDS]; // finished waits
    u64 waits[KINDS];
    u64 drop_requests;
    u64 failed_wakeups;        // woken, and the lock was taken again
    u64 failed_wakeup_wait_ns; // from the first of them in a wait to its end; finished waits
    u64 failed_since_ns;       // 0: none in the wait in flight
    u64 sleeps;                // in the wait in flight
    u64 hold_ns;               // finished holds, as far as they lie in windows
    u64 holds;                 // those that began in one
    u64 last_hold_began_ns;
    u64 descriptor;   // of the thread, which pthread_self() returns; 0: not asked for yet
    u64 released_ns;  // its last release, if that was seen and no wait has come since
    u64 stack;        // in which it has waited for the first time
    u64 exited_ns;    // 0: alive
    u64 long_hold_ns; // for the program that notes its trace, and the lock that it is about
    u64 noting_cond;
    u64 ending_since_ns; // for the program that ends a wait: when that began, when it is over,
    u64 ending_ns;       // and what it comes after
    u32 ending_cause;
    u32 is_told; // user space knows that the wait in flight is a long one
    u32 tgid;
    u32 cause;             // of the wait in flight
    u32 away_ns;           // from the release before that to its beginning; 0: not known
    u32 region_place;      // where its process reads what it has waited; 0: nowhere
    u64 left_out_since_ns; // for `left_out`: when it was first seen in that wait,
    u64 left_out_ns;       // and last
    u64 trapped_at;        // the instruction that it has run into a probe at last,
    u64 trapped_ns;        // and when: for probes that do not bear a second run
    u32 left_out;          // enum left_out: it is in a wait that does not count
    u32 padding;
    u64 version_begin;
};

// When holds count. Written by user space, but for the end that used up traps bring about.
struct window {
    u64 from_ns;         // a hold counts if it begins between these two; then it is followed to its
    u64 until_ns;        // end, but held time counts between them only
    u64 stop_at_traps;   // the count of its process' traps that ends it
    u64 inside_hold_ns;  // so much of the two traps' own time lies inside a measured hold
    u32 counts_begun;    // a hold in flight at `from_ns` counts from there
    u32 has_other_locks; // `other_locks` has entries of this process
};

// When waits count, where to see all of them costs a process too much. Written by user space.
struct wait_window {
    u64 placed_ns; // the probes were put back then; 0: they have never been out, all waits count
    u64 from_ns;   // a wait counts if it begins between these two; then it is followed to its end
    u64 until_ns;
    u64 shared_until_ns; // up to then the process may run into probes of its own and shared ones
};

// A GIL as the acquire and release sites see it. Its mutex is held there.
struct lock {
    u64 version_end;   // a copy runs upwards, so what is written last has to be read first
    u64 cond;          // 0: not known yet
    u64 held_since_ns; // 0: not held, or by a hold that does not count
    u64 released_ns;   // the last time that it was seen to be released, or to be free
    u64 held_ns;       // finished holds, as far as they lie in windows
    u64 hold_sum_ns;   // whole durations of the finished holds that began in a window
    u64 hold_slots[HISTOGRAM_SLOTS];
    u64 switch_sum_ns; // release to acquisition by a thread that was waiting for it
    u64 switch_slots[HISTOGRAM_SLOTS];
    u64 traps;         // at acquire and release sites; in a process' first lock, for all of them
    u64 unknown_takes; // likewise: of locks that have no slot
    u32 tgid;
    u32 holder_tid;     // who holds it, or held it last
    s64 switch_cond_at; // from cond
    u64 version_begin;
};

struct histogram_key {
    u64 cond;
    u32 tgid;
    u32 quantity;
};

struct histogram {
    u64 sum_ns;
    u64 slots[HISTOGRAM_SLOTS];
};

struct caller_key {
    u64 pc; // as the file states it: the run-time address less the load bias
    u32 file_id;
    u32 padding;
};

struct caller_rule {
    s32 cfa_offset;
    s32 saved_fp_offset; // 0: the caller's frame pointer is still in the register
    s32 return_at;       // from the canonical frame address
    u32 cfa_from_fp;
    u32 made_to_yield;
};

struct return_site_key {
    u64 address; // run-time address that a libc wait returns to
    u32 tgid;
    u32 padding;
};

// Filled by the libc method: whoever calls pthread_cond_timedwait on a GIL is take_gil.
struct return_site {
    u32 is_yield; // returned to from pthread_cond_wait on switch_cond
    u32 probed;   // user space has put a probe there; waits before that are lost
};
