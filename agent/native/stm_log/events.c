#include "events.h"

static const char *const names[STM_EVENTS] = {
    [STM_TRANSACTION_START] = "STM_TRANSACTION_START",
    [STM_TRANSACTION_COMMIT] = "STM_TRANSACTION_COMMIT",
    [STM_TRANSACTION_ABORT] = "STM_TRANSACTION_ABORT",
    [STM_TRANSACTION_DETACH] = "STM_TRANSACTION_DETACH",
    [STM_TRANSACTION_REATTACH] = "STM_TRANSACTION_REATTACH",
    [STM_BECOME_INEVITABLE] = "STM_BECOME_INEVITABLE",
    [STM_CONTENTION_WRITE_WRITE] = "STM_CONTENTION_WRITE_WRITE",
    [STM_CONTENTION_WRITE_READ] = "STM_CONTENTION_WRITE_READ",
    [STM_CONTENTION_INEVITABLE] = "STM_CONTENTION_INEVITABLE",
    [STM_ABORTING_OTHER_CONTENTION] = "STM_ABORTING_OTHER_CONTENTION",
    [STM_WAIT_FREE_SEGMENT] = "STM_WAIT_FREE_SEGMENT",
    [STM_WAIT_SYNCING] = "STM_WAIT_SYNCING",
    [STM_WAIT_SYNC_PAUSE] = "STM_WAIT_SYNC_PAUSE",
    [STM_WAIT_OTHER_INEVITABLE] = "STM_WAIT_OTHER_INEVITABLE",
    [STM_WAIT_CONTENTION] = "STM_WAIT_CONTENTION",
    [STM_WAIT_DONE] = "STM_WAIT_DONE",
    [STM_GC_MINOR_START] = "STM_GC_MINOR_START",
    [STM_GC_MINOR_DONE] = "STM_GC_MINOR_DONE",
    [STM_GC_MAJOR_START] = "STM_GC_MAJOR_START",
    [STM_GC_MAJOR_DONE] = "STM_GC_MAJOR_DONE",
    [STM_WARMUP_COMPLETE] = "STM_WARMUP_COMPLETE",
    [STM_DURATION_START_TRX] = "STM_DURATION_START_TRX",
    [STM_DURATION_WRITE_GC_ONLY] = "STM_DURATION_WRITE_GC_ONLY",
    [STM_DURATION_WRITE_SLOWPATH] = "STM_DURATION_WRITE_SLOWPATH",
    [STM_DURATION_VALIDATION] = "STM_DURATION_VALIDATION",
    [STM_DURATION_CREATE_CLE] = "STM_DURATION_CREATE_CLE",
    [STM_DURATION_COMMIT_EXCEPT_GC] = "STM_DURATION_COMMIT_EXCEPT_GC",
    [STM_DURATION_MINOR_GC] = "STM_DURATION_MINOR_GC",
    [STM_DURATION_MAJOR_GC_LOG_ONLY] = "STM_DURATION_MAJOR_GC_LOG_ONLY",
    [STM_DURATION_MAJOR_GC_FULL] = "STM_DURATION_MAJOR_GC_FULL",
    [STM_SINGLE_THREAD_MODE_ON] = "STM_SINGLE_THREAD_MODE_ON",
    [STM_SINGLE_THREAD_MODE_OFF] = "STM_SINGLE_THREAD_MODE_OFF",
    [STM_SINGLE_THREAD_MODE_ADAPTIVE] = "STM_SINGLE_THREAD_MODE_ADAPTIVE",
    [STM_UNKNOWN_EVENT] = "STM_UNKNOWN_EVENT",
};

// Those behind a table's last one.
#define UNKNOWN(first) [first... STM_EVENT_NUMBERS - 1] = STM_UNKNOWN_EVENT

// The 16 events of the final PyPy-STM, which the research branches begin with.
#define FINAL_EVENTS \
    STM_TRANSACTION_START, STM_TRANSACTION_COMMIT, STM_TRANSACTION_ABORT, STM_TRANSACTION_DETACH, \
        STM_TRANSACTION_REATTACH, STM_BECOME_INEVITABLE, STM_CONTENTION_WRITE_READ, \
        STM_WAIT_FREE_SEGMENT, STM_WAIT_SYNCING, STM_WAIT_SYNC_PAUSE, STM_WAIT_OTHER_INEVITABLE, \
        STM_WAIT_DONE, STM_GC_MINOR_START, STM_GC_MINOR_DONE, STM_GC_MAJOR_START, \
        STM_GC_MAJOR_DONE

// What the research branches had in common from their beginning.
#define RESEARCH_EVENTS \
    STM_DURATION_START_TRX, STM_DURATION_WRITE_GC_ONLY, STM_DURATION_WRITE_SLOWPATH, \
        STM_DURATION_VALIDATION, STM_DURATION_CREATE_CLE, STM_DURATION_COMMIT_EXCEPT_GC, \
        STM_DURATION_MINOR_GC, STM_DURATION_MAJOR_GC_LOG_ONLY, STM_DURATION_MAJOR_GC_FULL, \
        STM_SINGLE_THREAD_MODE_ON, STM_SINGLE_THREAD_MODE_OFF, STM_SINGLE_THREAD_MODE_ADAPTIVE

#define BITS_FROM(first) (~UINT32_C(0) << (first))
#define BIT(number) (UINT32_C(1) << (number))

static const struct stm_table tables[STM_TABLES] =
    {
        [STM_TABLE_C7] =
            {
                .name = "C7",
                .events = {STM_TRANSACTION_START, STM_TRANSACTION_COMMIT, STM_TRANSACTION_ABORT,
                           STM_CONTENTION_WRITE_WRITE, STM_CONTENTION_WRITE_READ,
                           STM_CONTENTION_INEVITABLE, STM_ABORTING_OTHER_CONTENTION,
                           STM_WAIT_FREE_SEGMENT, STM_WAIT_SYNC_PAUSE, STM_WAIT_CONTENTION,
                           STM_WAIT_DONE, STM_GC_MINOR_START, STM_GC_MINOR_DONE, STM_GC_MAJOR_START,
                           STM_GC_MAJOR_DONE, UNKNOWN(15)},
                .size = 15,
                .payloads = BIT(3) | BIT(4) | BIT(5),
                .semantics = STM_S1,
            },
        [STM_TABLE_A11] =
            {
                .name = "A11",
                .events = {STM_TRANSACTION_START, STM_TRANSACTION_COMMIT, STM_TRANSACTION_ABORT,
                           STM_CONTENTION_WRITE_READ, STM_WAIT_FREE_SEGMENT,
                           STM_WAIT_OTHER_INEVITABLE, STM_WAIT_DONE, STM_GC_MINOR_START,
                           STM_GC_MINOR_DONE, STM_GC_MAJOR_START, STM_GC_MAJOR_DONE, UNKNOWN(11)},
                .size = 11,
                .payloads = BIT(1) | BIT(3) | BIT(5),
                .semantics = STM_S1,
            },
        [STM_TABLE_B12] =
            {
                .name = "B12",
                .events = {STM_TRANSACTION_START, STM_TRANSACTION_COMMIT, STM_TRANSACTION_ABORT,
                           STM_CONTENTION_WRITE_READ, STM_WAIT_FREE_SEGMENT, STM_WAIT_SYNC_PAUSE,
                           STM_WAIT_OTHER_INEVITABLE, STM_WAIT_DONE, STM_GC_MINOR_START,
                           STM_GC_MINOR_DONE, STM_GC_MAJOR_START, STM_GC_MAJOR_DONE, UNKNOWN(12)},
                .size = 12,
                .payloads = BIT(1) | BIT(3) | BIT(6),
                .semantics = STM_S1,
            },
        [STM_TABLE_C13] =
            {
                .name = "C13",
                .events = {STM_TRANSACTION_START, STM_TRANSACTION_COMMIT, STM_TRANSACTION_ABORT,
                           STM_CONTENTION_WRITE_READ, STM_BECOME_INEVITABLE, STM_WAIT_FREE_SEGMENT,
                           STM_WAIT_SYNC_PAUSE, STM_WAIT_OTHER_INEVITABLE, STM_WAIT_DONE,
                           STM_GC_MINOR_START, STM_GC_MINOR_DONE, STM_GC_MAJOR_START,
                           STM_GC_MAJOR_DONE, UNKNOWN(13)},
                .size = 13,
                .payloads = BIT(3) | BIT(4),
                .semantics = STM_S2,
            },
        [STM_TABLE_D14] =
            {
                .name = "D14",
                .events = {STM_TRANSACTION_START, STM_TRANSACTION_COMMIT, STM_TRANSACTION_ABORT,
                           STM_BECOME_INEVITABLE, STM_CONTENTION_WRITE_READ, STM_WAIT_FREE_SEGMENT,
                           STM_WAIT_SYNCING, STM_WAIT_SYNC_PAUSE, STM_WAIT_OTHER_INEVITABLE,
                           STM_WAIT_DONE, STM_GC_MINOR_START, STM_GC_MINOR_DONE, STM_GC_MAJOR_START,
                           STM_GC_MAJOR_DONE, UNKNOWN(14)},
                .size = 14,
                .payloads = BIT(3) | BIT(4),
                .semantics = STM_S2,
            },
        [STM_TABLE_E16] =
            {
                .name = "E16",
                .events = {FINAL_EVENTS, UNKNOWN(16)},
                .size = 16,
                .payloads = BIT(5) | BIT(6),
                .semantics = STM_S2,
                .is_read_by_last_tool = true,
            },
        [STM_TABLE_X28] =
            {
                .name = "X28",
                .events = {FINAL_EVENTS, RESEARCH_EVENTS, UNKNOWN(28)},
                .size = 28,
                .payloads = BIT(5) | BIT(6) | BITS_FROM(16),
                .semantics = STM_S2,
                .is_read_by_last_tool = true,
            },
        [STM_TABLE_X29] =
            {
                .name = "X29",
                .events = {FINAL_EVENTS, STM_WARMUP_COMPLETE, RESEARCH_EVENTS, UNKNOWN(29)},
                .size = 29,
                .payloads = BIT(5) | BIT(6) | BITS_FROM(16),
                .semantics = STM_S2,
                .is_read_by_last_tool = true,
            },
};

const char *stm_event_name(enum stm_event event)
{
    return names[event];
}

const struct stm_table *stm_table(enum stm_table_id id)
{
    return &tables[id];
}
