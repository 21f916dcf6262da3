// The events of an STM log, and the tables that say which number stands for which of them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum stm_event {
    STM_TRANSACTION_START,
    STM_TRANSACTION_COMMIT,
    STM_TRANSACTION_ABORT,
    STM_TRANSACTION_DETACH,
    STM_TRANSACTION_REATTACH,
    STM_BECOME_INEVITABLE,
    STM_CONTENTION_WRITE_WRITE,
    STM_CONTENTION_WRITE_READ,
    STM_CONTENTION_INEVITABLE,
    STM_ABORTING_OTHER_CONTENTION,
    STM_WAIT_FREE_SEGMENT,
    STM_WAIT_SYNCING,
    STM_WAIT_SYNC_PAUSE,
    STM_WAIT_OTHER_INEVITABLE,
    STM_WAIT_CONTENTION,
    STM_WAIT_DONE,
    STM_GC_MINOR_START,
    STM_GC_MINOR_DONE,
    STM_GC_MAJOR_START,
    STM_GC_MAJOR_DONE,
    // Of the research branches of 2017: counted, and of no effect on any time.
    STM_WARMUP_COMPLETE,
    STM_DURATION_START_TRX,
    STM_DURATION_WRITE_GC_ONLY,
    STM_DURATION_WRITE_SLOWPATH,
    STM_DURATION_VALIDATION,
    STM_DURATION_CREATE_CLE,
    STM_DURATION_COMMIT_EXCEPT_GC,
    STM_DURATION_MINOR_GC,
    STM_DURATION_MAJOR_GC_LOG_ONLY,
    STM_DURATION_MAJOR_GC_FULL,
    STM_SINGLE_THREAD_MODE_ON,
    STM_SINGLE_THREAD_MODE_OFF,
    STM_SINGLE_THREAD_MODE_ADAPTIVE,
    // A number that the table does not have.
    STM_UNKNOWN_EVENT,
    STM_EVENTS,
};

// How conflicts are charged: by which versions of the original tool.
enum stm_semantics {
    STM_S0,
    STM_S1,
    STM_S2,
};

// The tables, in the order in which they came up.
enum stm_table_id {
    STM_TABLE_C7,
    STM_TABLE_A11,
    STM_TABLE_B12,
    STM_TABLE_C13,
    STM_TABLE_D14,
    STM_TABLE_E16,
    STM_TABLE_X28,
    STM_TABLE_X29,
    STM_TABLES,
};

// Numbers that are counted one by one. A greater one is not an event of any version.
#define STM_EVENT_NUMBERS 64

struct stm_table {
    const char *name;
    // What stands for each number; STM_UNKNOWN_EVENT beyond the last one.
    uint8_t events[STM_EVENT_NUMBERS];
    uint8_t size;
    // A bit for each number that may carry a payload.
    uint32_t payloads;
    enum stm_semantics semantics;
    // By the original tool of 2017, whose rule for threads that wait for a segment is its own.
    bool is_read_by_last_tool;
};

// Returns the name of an event, with its prefix.
const char *stm_event_name(enum stm_event event);

const struct stm_table *stm_table(enum stm_table_id id);

// Whether the thread stands still from this event on, until STM_WAIT_DONE.
static inline bool stm_is_wait(enum stm_event event)
{
    return event >= STM_WAIT_FREE_SEGMENT && event <= STM_WAIT_CONTENTION;
}

// Whether the event says that two transactions collided.
static inline bool stm_is_contention(enum stm_event event)
{
    return event >= STM_CONTENTION_WRITE_WRITE && event <= STM_CONTENTION_INEVITABLE;
}
