// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Made by `make abi` from agent/gilscope/transactions/abi.py, which says the same to Python.

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
#define EVENT_NUMBERS 32   // a power of two
#define WAITS 8            // a power of two; there are 5 kinds
#define COLLECTIONS 2      // generations of them
#define RESTART_REASONS 16 // a power of two; libitm has 11

// Why an event of a transaction was lost.
enum loss {
    LOST_READ_FAULT = 0,
    LOST_TABLE_FULL = 1,
    LOST_BEGAN_UNSEEN = 2,
    LOST_ABANDONED = 3,
    LOST_THREAD_REUSED = 4,
};

// The programs that sit in traced processes: bits of `stepped_programs`.
enum program {
    PROGRAM_ON_ABORT = 0,
    PROGRAM_ON_BECOME_INEVITABLE = 1,
    PROGRAM_ON_EVENT = 2,
    PROGRAM_ON_ITM_BEGIN = 3,
    PROGRAM_ON_ITM_CANCEL = 4,
    PROGRAM_ON_ITM_COMMIT = 5,
    PROGRAM_ON_ITM_MODE = 6,
    PROGRAM_ON_ITM_RESTART = 7,
    PROGRAM_ON_START = 8,
    PROGRAM_ON_LEAVE = 9,
    PROGRAM_ON_UNREGISTER = 10,
};

// Generations of RPython's collections of garbage.
enum collection {
    COLLECTION_MINOR = 0,
    COLLECTION_MAJOR = 1,
};

// What happens to a transaction of RPython, whatever number the program gives it.
enum event {
    EVENT_OTHER = 0, // what is not followed
    EVENT_START = 1,
    EVENT_COMMIT = 2,
    EVENT_ABORT = 3,
    EVENT_DETACH = 4,
    EVENT_REATTACH = 5,
    EVENT_CONFLICT = 6,
    EVENT_WAIT_FREE_SEGMENT = 7, // the waits are in the order of enum wait
    EVENT_WAIT_SYNCING = 8,
    EVENT_WAIT_SYNC_PAUSE = 9,
    EVENT_WAIT_OTHER_INEVITABLE = 10,
    EVENT_WAIT_CONTENTION = 11,
    EVENT_WAIT_DONE = 12,
    EVENT_GC_MINOR_START = 13,
    EVENT_GC_MINOR_DONE = 14,
    EVENT_GC_MAJOR_START = 15,
    EVENT_GC_MAJOR_DONE = 16,
};

// A process whose window has ended by itself, or which has a child with a copy of its memory.
struct notice {
    u32 tgid;
    u32 is_fork;
};
