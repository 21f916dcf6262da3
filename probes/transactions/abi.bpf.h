// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Made by `make abi` from agent/gilscope/transactions/abi.py, which says the same to Python.

#define HISTOGRAM_SLOTS 36 // slot k: 2^(k-1) < ns <= 2^k; the last takes the rest
#define WAITS 4            // kinds of them
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
};

// A process whose window has ended by itself, or which has a child with a copy of its memory.
struct notice {
    u32 tgid;
    u32 is_fork;
};
