// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Made by `make abi` from agent/gilscope/gil/abi.py, which says the same to Python.

#define HISTOGRAM_OCTAVE_BITS 3 // 2 to this: slots from 2^k to 2^(k+1)
#define HISTOGRAM_SLOTS 257     // the last takes the rest
#define HISTOGRAM_STEP_BITS 31  // an octave begins at 2 to this, its slots
#define HISTOGRAM_STEP_1 2341847523
#define HISTOGRAM_STEP_2 2553802833
#define HISTOGRAM_STEP_3 2784941737
#define HISTOGRAM_STEP_4 3037000499
#define HISTOGRAM_STEP_5 3311872529
#define HISTOGRAM_STEP_6 3611622602
#define HISTOGRAM_STEP_7 3938502375
#define STACK_DEPTH 32 // frames that are noted; a power of two
#define NEXT_PROGRAMS 11
#define QUOTAS 8             // room for them
#define SPAN_IS_HOLD 4       // in place of a wait's kind
#define SPAN_SECOND_SHIFT 30 // 2^30 ns are what spans call a second
#define REGION_PLACES 1024   // of a process' threads, and the head
#define REGION_TRIES 8       // in a row, one of which a thread may have
#define REGION_HOMES 1016    // where these rows begin
#define OWNER_WITHOUT_CODE 3 // from this value on a frame's owner is C code
#define LONGEST_ROUTE 64     // with the zero at its end; a power of two
#define REFERENCE_FLAGS 7    // low bits of a _PyStackRef (3.14)

// Why a thread waits for the GIL.
enum cause {
    AFTER_BLOCKING_CALL = 0, // the thread came back from a call that had released the GIL
    AFTER_PREEMPTION = 1,    // the evaluation loop made the thread yield
    AFTER_UNKNOWN = 2,       // this build's evaluation loop could not be told apart
};

// What kind of loss a finished wait was: 0 to 2 as in enum cause.
enum kind {
    CONVOY = 3, // after a blocking call, for a switch interval or more
    KINDS = 4,
};

// What a histogram is of: 0 to 2 are waits, by cause.
enum quantity {
    DROP_LATENCY = 3,
};

// Why an event was lost, or found invalid.
enum loss {
    LOST_READ_FAULT = 0,
    LOST_TABLE_FULL = 1,
    LOST_BEGAN_UNSEEN = 2,
    LOST_ABANDONED = 3,
    LOST_NOTICE = 4,
    LOST_RETURN_UNKNOWN = 5,
    LOST_LOCK_UNKNOWN = 6,
    LOST_THREAD_REUSED = 7,
    LOST_STACK_TORN = 8,
    LOST_STACK_UNKNOWN = 9,
    LOST_STACK_UNSENT = 10,
    LOST_EDGE = 11,
    LOST_SPAN = 12,
    LOST_QUOTA = 13,
    INVALID_MUTEX = 14,
    INVALID_LOCKED = 15,
    INVALID_INTERVAL = 16,
    INVALID_HOLDER = 17,
    LOST_TRACE = 19,
    LOST_UNFOLLOWED = 20,
    LOST_WINDOW = 21,
};

// What the probes ask user space to check.
enum notice_kind {
    NOTICE_EXEC = 0,      // a process has replaced its program
    NOTICE_THREAD = 1,    // a thread waits for the first time
    NOTICE_RETURN = 2,    // the libc method has met a new return site
    NOTICE_LOCK = 3,      // a lock is taken that user space has not given a slot
    NOTICE_WINDOW = 4,    // a window's traps are used up, or the hold that outlasted it has ended
    NOTICE_SPANS = 5,     // another quarter of the ring of spans has filled
    NOTICE_FORK = 6,      // a process has a child, with a copy of its memory
    NOTICE_LONG_WAIT = 7, // a wait lasts as long as user space wants to know of
};

// How much of a stack was seen.
enum stack_state {
    STACK_WHOLE = 0,
    STACK_CUT = 1,  // deeper than STACK_DEPTH, or the caller of a generator is not known just now
    STACK_TORN = 2, // its innermost frames changed while they were being read, and are left out
};

// Ids of stacks; those that were read have the highest bit set.
enum stack_id {
    STACK_NONE = 0,      // not sampled yet
    STACK_UNKNOWN = 1,   // it could not be read, or nobody can tell whose it is
    STACK_NO_PYTHON = 2, // the thread runs no Python code
    STACK_UNSAMPLED = 3, // of a wait that was left out by random sampling
};

// What the programs jump to, by its number in `next_program`.
enum next_program_number {
    WALK_STACK = 0,
    USE_STACK = 1,
    FIND_THREAD = 2,
    END_WAIT = 3,
    ON_WAIT = 4,
    ON_YIELD = 5,
    READ_STACK = 6,
    WALK_TURN = 7,
    WALK_TURN_HOLDER = 8,
    SHARE_OUT = 9,
    NOTE_HOLDERS_TRACE = 10,
};

// What a request has kept the lock by.
enum held_trace_kind {
    LONG_HOLD = 0, // that lasted as long as a slow drop, where all holds are seen
    SLOW_DROP = 1,
};

// What one process may have a bounded number of, so that there is room for all others.
enum quota {
    QUOTA_THREADS = 0,
    QUOTA_BLAMES = 1,
    QUOTA_GILS = 2,
    QUOTA_RETURN_SITES = 3,
    QUOTA_EDGES = 4,
    QUOTA_CULPRITS = 5,
    QUOTA_STACKS = 6, // that are in the ring, not read yet
    QUOTA_TRACES = 7,
};

// What is known of a process beyond the least, a bit each.
enum target_flag {
    TARGET_KNOWS_CALLERS = 1, // `callers` has rules for this file
    TARGET_READS_STACKS = 2,  // `pythons` has an entry for this process
};

// What the ring of notices has.
struct notice {
    u32 kind;
    u32 tgid;
    u32 tid;
    u32 padding;
};

// The frames of a thread that run Python code, innermost first.
struct stack {
    u64 id;
    u32 tgid;
    u32 depth;
    u32 state;
    u32 padding;
    u64 codes[32];
    u32 instructions[32]; // from the code object, or as the frame states it
    u32 identities[32];   // of the code objects: see code_objects
};

// One wait or one hold.
struct span {
    u64 cond;
    u64 began_ns;
    u64 ended_ns;
    u64 waiter; // stacks; a hold has none
    u64 holder;
    u32 tgid;
    u32 tid;
    u32 kind;
    u32 away_ns; // from the release before a wait; 0: not known
};

// What comes first among the places of a process' threads.
struct region_head {
    u64 namespace_device; // of the pid namespace that it knows them in;
    u64 namespace_inode;  // 0 and 0: the agent's own
    u64 unplaced;         // waits and holds of threads without a place
    u64 held_since_ns;    // when who holds the GIL has acquired it
    u32 holder;           // as its process knows it; 0: nobody, or not known
    u32 tells_holds;      // all of them are seen, by the clock that it has too
    u64 spare[3];
};

// What a thread has waited and held, as its process reads it; the numbers tell a torn copy.
struct region_place {
    u64 version_end;
    u32 tid;     // as its process knows it; 0: nobody's
    u32 owner;   // the same as the agent knows it
    u64 wait_ns; // finished waits
    u64 waits;
    u64 held_ns; // finished holds, where the head tells of them
    u64 version_begin;
    u64 spare[2];
};
