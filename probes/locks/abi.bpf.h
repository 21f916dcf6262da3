// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Made by `make abi` from agent/gilscope/locks/abi.py, which says the same to Python.

#define LONGEST_TYPE 64      // with the zero at its end
#define STACK_DEPTH 8        // a power of two
#define MOST_HOLDERS 256     // stacks of a process that only they had
#define MOST_HELD_WAITS 64   // entries of a thread in `waits` by them
#define SPAN_SECOND_SHIFT 30 // 2^30 ns are what spans call a second
#define OWNER_WITHOUT_CODE 3 // from here on, of a frame
#define REFERENCE_FLAGS 7    // of a reference to code, no part of it

// Why a wait was not counted.
enum loss {
    LOST_READ_FAULT = 0,
    LOST_TABLE_FULL = 1,
    LOST_BEGAN_UNSEEN = 2,
    LOST_THREAD_REUSED = 3,
    LOST_STACK_UNKNOWN = 4,
    LOST_SPAN = 5,
};

// The programs that sit in traced processes: bits of `stepped_programs`.
enum program {
    PROGRAM_ON_PARK = 0,
    PROGRAM_ON_SEMAPHORE = 1,
    PROGRAM_ON_TAKE = 2,
    PROGRAM_ON_WAKE = 3,
    PROGRAM_ON_WANT = 4,
    PROGRAM_ON_WOKEN = 5,
    PROGRAM_ON_STOP = 6,
    PROGRAM_ON_START = 7,
};

// What a thread waits for, as far as the probes tell it.
enum sleep_kind {
    SLEEP_OBJECT = 0,      // the lock of an object
    SLEEP_LOCK_OBJECT = 1, // an object that is a lock
    SLEEP_INTERPRETER = 2, // a mutex of the interpreter
    SLEEP_OTHER = 3,       // another mutex
    SLEEP_SEMAPHORE = 4,   // a lock of the older kind
    SLEEP_STOPPED = 5,     // the end of a stop of the world
    SLEEP_STOPPING = 6,    // a stop that it has asked for: until the other threads have stopped
    SLEEP_EVENT = 7,       // an event, the end of a thread or an item of a queue
};

// What a span is a part of.
enum span_kind {
    SPAN_WAIT = 0,
    SPAN_STOPPING = 1, // a stop of the world, until all threads have stopped
    SPAN_STANDING = 2, // a stop of the world, from then on
};

// A part of a wait, or of a stop of the world, as it has counted.
struct span {
    u64 began_ns;
    u64 ended_ns;
    u64 stack;    // of the waiting thread; 0: not known
    u64 released; // likewise, of who has ended the wait
    u64 held;     // likewise, of who had the mutex when it began
    u32 tgid;
    u32 tid;
    u32 kind;    // enum span_kind
    u32 reason;  // enum sleep_kind; of a stop, whether it is a collection
    u8 type[64]; // of the object, or empty
};

// A process whose window has ended by itself, or which has a child with a copy of its memory.
struct notice {
    u32 tgid;
    u32 is_fork;
};
