// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What is kept of processes, of threads that wait, and of what they have waited for.
//
// A thread's record, and what it has waited for, are written by that thread alone.
//
// A process is observed all the time, or in windows, which user space opens and ends. A wait counts
// where both of its ends lie in the same window, and a mutex from the window's beginning on.

#define THREAD_NAME 16

// Where a process' Python keeps its locks. Written by user space.
struct target {
    u64 runtime; // _PyRuntime, from its first byte to behind its last
    u64 runtime_end;
    u64 type_of_types; // address of PyType_Type
    u32 interpreter_size;
    u32 thread_state;     // in a thread state: whether it is attached, detached or suspended
    u32 object_type;      // in an object
    u32 object_lock;      // in an object; 0: it has none
    u32 lock_content;     // in an object that is a lock: the mutex
    u32 type_name;        // in a type
    u32 critical_section; // in a thread state: the innermost one that it is in; 0: there are none
    u32 rlock_owner;   // behind the mutex of an RLock: the number of its thread; 0: it is not there
    u32 gc_collecting; // in an interpreter: whether it collects
    u32 spins;         // a mutex is tried for a while before a thread sleeps for it
    u32 lock_register; // then, in pt_regs where it is taken: its address
    u32 types_lock;    // in an interpreter: its locks that have names; 0: it is not known
    u32 weak_reference_locks;     // the first of a row: which one it is depends on the object
    u32 weak_reference_locks_end; // behind the last
    u32 interned_lock;
    // Whether it is observed all the time: then a sleep whose beginning was not seen is lost.
    u32 is_whole;
    u32 stepped_programs; // bits: those whose traps the kernel has to single-step
    u32 sees_stops;       // it is known where the world is stopped and started
    u64 trap_ns;          // what a trap is taken to cost, and one that is single-stepped
    u64 stepped_trap_ns;
    u64 from_ns; // the window, CLOCK_MONOTONIC; it also tells one window from another
    u64 until_ns;
    u64 stop_at_cost_ns; // the window ends by itself at so much of `cost_ns`
};

struct totals {
    u64 traps;       // in windows and outside of them
    u64 cost_ns;     // of these, estimated
    u64 ended_ns;    // when a window has last ended by itself
    u64 held_stacks; // that are kept because somebody stood there who had a lock
};

struct stack_key {
    u64 id;
    u32 tgid;
    u32 padding;
};

struct stack {
    u64 codes[STACK_DEPTH];
    u32 instructions[STACK_DEPTH]; // from the code object
    u32 identities[STACK_DEPTH];
    u32 depth;
    u32 is_cut; // it is deeper
};

struct wake_key {
    u64 semaphore;
    u32 tgid;
    u32 padding;
};

// Who has woken a thread, which may not have fallen asleep yet.
struct wake {
    u64 at_ns;     // 0: nobody has
    u64 stack;     // 0: not known
    u64 asleep_ns; // since when it sleeps because of a stop, or for an RLock; 0: something else
    u64 number;    // that the RLock will have of it then; 0: it sleeps because of a stop
    u32 tid;       // of who sleeps; 0: not known
    u32 padding;
};

struct mutex_key {
    u64 address;
    u32 tgid;
    u32 padding;
};

// Who was given the mutex of an RLock last.
struct hand_over {
    u64 at_ns;
    u64 number; // of the thread, as the RLock will have it
    u32 tid;
    u32 padding;
};

// Stops of the world that were asked for at one place.
struct stop_key {
    u64 stack; // 0: not known
    u32 tgid;
    u32 is_collection;
};

struct stop {
    u64 stops;
    u64 stopping_ns; // until the last thread had stopped
    u64 standing_ns; // from then on, until the last one was woken
    u64 longest_ns;  // of both together
};

// What is waited for, by whom and where.
struct wait_key {
    u64 stack;    // 0: not known
    u64 released; // the stack of the thread that has ended the wait; 0: not known
    u64 held;     // that of the thread that had the mutex when it began; 0: not known
    u32 tgid;
    u32 tid;
    u32 kind; // enum sleep_kind
    u32 padding;
    u8 type[LONGEST_TYPE]; // of the object, or the name of a lock of the interpreter; or empty
};

struct wait {
    u64 wait_ns;
    u64 slept_ns; // of these
    u64 waits;
    u64 sleeps; // a mutex may take several in one wait
    u64 longest_ns;
};

// How far a stop of the world is, as the thread knows that has asked for it.
enum stop_phase {
    PHASE_STOPPING, // others may run yet
    PHASE_STANDS,
    PHASE_OVER, // others have been woken
};

// A thread may sleep for something else while it wants a mutex.
enum want {
    WANTS_MUTEX,
    WANTS_OTHER,
    WANTS,
};

struct thread {
    u64 window_ns;        // the window in which the rest was seen, up to `semaphore`
    u64 wanted_ns;        // since when it wants the mutex that it wants, or has wanted last
    u64 counted_then_ns;  // `counted_ns` at that time
    u64 counted_ns;       // waits of all kinds so far: no moment counts twice
    u64 counted_until_ns; // the end of the last of these
    u64 asleep_ns;        // 0: awake
    u64 traps;            // in this window
    u64 semaphore;        // that it sleeps in
    u64 tstate;           // its own; 0: not known
    u64 exited_ns;        // 0: alive
    u64 stop_until_ns;    // its last stop of the world has counted up to here; 0: there is none
    u64 stop_ns;          // what that has taken so far
    u64 stop_stack;       // where it asked for it
    u64 stop_world;       // the structure of that world; 0: not known
    u64 stop_woke;        // the first thread that it has woken then, by the state of that
    u64 stacks[WANTS];
    u64 released[WANTS]; // as in struct wait_key, by who has woken it last
    u64 mutex;           // that it wants, or has wanted last; 0: not known
    u64 held;            // as in struct wait_key
    u32 kinds[WANTS];    // enum sleep_kind
    u32 tgid;
    u32 is_counted; // the wait for the mutex is one of `waits` already
    u32 sleeps_for; // enum want
    u32 stop_is_collection;
    u32 stop_phase;        // enum stop_phase
    u32 held_waits;        // entries of `waits` that say who had the mutex
    u8 type[LONGEST_TYPE]; // of the object whose mutex it is, or the name of the mutex
    u8 name[THREAD_NAME];
};

// What a thread is about to sleep for.
struct park {
    u64 argument;
    u64 address;
    u64 wanted_ns; // of a mutex
    u32 is_bucket;
    u32 is_mutex;
};

// Who has a mutex, and what says so.
struct holder {
    u64 tstate; // 0: not known
    u64 number; // of the thread, as an RLock has it; 0: it is in a critical section
    u64 owner;  // the number in the RLock; 0: it was handed over to that thread, which has not run
    u64 given_ns; // when, if it was; else 0
    u64 section;  // that one, and the innermost one that the thread was in; both with their tags
    u64 innermost;
    u32 tid; // of who was given it
    u32 padding;
};

// Working space. It must be the thread's own: a program may be interrupted by another thread's.
struct work {
    struct stack stack;
    u64 pointers[MAX_CODE_POINTERS];
    struct park park;
    struct holder holder;
};
