// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What is kept of processes, transactions and threads.
//
// What is counted of a process is added to atomically. A transaction's record is changed by one
// thread at a time: by its own, or, where an RPython program has left it open outside, by the one
// that takes it over.
//
// A process is observed all the time, or in windows, which user space opens and ends. What happens
// outside of windows is not counted, and neither is what began or will end there: times of
// transactions, tries and waits are counted where both of their ends lie in the same window.

#define REASON_SIZE 64
#define NAME_SIZE 16
#define MAX_NESTING 8

// All of it is written by user space.
struct target {
    u8 events[EVENT_NUMBERS]; // enum event, by the number that the program gives it
    // Whether it is observed all the time. Then a transaction that had begun before the probes were
    // there counts without its time; of one that had begun before a window nothing counts.
    u32 is_whole;
    u32 stepped_programs; // bits: those whose traps the kernel has to single-step
    u64 trap_ns;          // what a trap is taken to cost, and one that is single-stepped
    u64 stepped_trap_ns;
    u64 from_ns; // the window, CLOCK_MONOTONIC; it also tells one window from another
    u64 until_ns;
    u64 stop_at_cost_ns; // the window ends by itself at so much of `cost_ns`
};

struct totals {
    u64 traps;    // in windows and outside of them
    u64 cost_ns;  // of these, estimated
    u64 ended_ns; // when a window has last ended by itself
    u64 commits;
    u64 aborts;
    u64 cancels; // by the program's own wish
    u64 names;   // in `reasons`
    u64 unnamed; // of `reasons`, those that there was no room for
    u64 conflicts;
    u64 wait_ns[WAITS]; // finished waits, by kind
    u64 waits[WAITS];
    u64 restarts[RESTART_REASONS];
    u64 collected_ns[COLLECTIONS]; // finished collections of garbage, by generation
    u64 collected[COLLECTIONS];
    u64 committed_ns;
    u64 committed_slots[HISTOGRAM_SLOTS];
    u64 aborted_ns;
    u64 aborted_slots[HISTOGRAM_SLOTS];
};

struct transaction_key {
    u64 thread; // its id, or the address of what the program knows it by
    u32 tgid;
    u32 padding;
};

struct transaction {
    u64 window_ns; // the window that all of this was seen in
    u64 began_ns;  // 0: there is none
    u64 tried_ns;  // when the try in flight began
    u64 waiting_since_ns;
    u64 waited_ns; // since the try began
    u64 detached_since_ns;
    u64 detached_ns;
    u64 collecting_since_ns[COLLECTIONS];
    u64 committed_ns; // libitm: 0, or when the commit began that is counted
    // libitm: where the nested transactions were begun, the outermost first.
    u64 stack_pointers[MAX_NESTING];
    u64 returns[MAX_NESTING];
    u32 depth;
    u32 wait;  // the kind, with waiting_since_ns
    u32 owner; // the thread that began it, whoever ends it; 0: not seen
    u32 padding;
};

struct thread {
    u64 commits;
    u64 committed_ns;
    u64 aborts;
    u64 aborted_ns;
    u64 exited_ns; // 0: alive
    u64 known_as;  // to an RPython program
    u64 left_at;   // where it called to leave its transaction open
    u32 tgid;
    u32 padding;
    u8 name[NAME_SIZE];
};

struct reason_key {
    u8 reason[REASON_SIZE]; // empty: the program gives none
    u64 place;              // then what has called, else 0
    u32 tgid;
    u32 padding;
};
