#include "detect.h"

#include <string.h>

static const enum stm_table_id candidates[STM_CANDIDATES] = {
    STM_TABLE_A11, STM_TABLE_B12, STM_TABLE_C13, STM_TABLE_D14, STM_TABLE_E16,
};

#define FIRST_RESEARCH_EVENT 16

// What a thread is known to be in.
#define IN_TRANSACTION 1
#define IN_WAIT 2
#define IN_MINOR_GC 4
#define AFTER_WRITE_READ 8
// Nothing was seen of the thread yet, so that anything may be in flight.
#define IS_NEW 16

// Returns how often *event* breaks the order of events in a thread, and notes what it is in now.
static uint32_t follow(uint8_t *state, enum stm_event event)
{
    uint8_t before = *state;
    uint32_t violations = 0;

    if (before & AFTER_WRITE_READ && event != STM_TRANSACTION_ABORT)
        violations++;
    if (before & IN_MINOR_GC && event != STM_GC_MINOR_DONE)
        violations++;
    *state &= (uint8_t)~(AFTER_WRITE_READ | IN_MINOR_GC | IS_NEW);
    switch (event) {
    case STM_TRANSACTION_START:
        violations += before & IN_TRANSACTION ? 1 : 0;
        *state = IN_TRANSACTION;
        break;
    case STM_TRANSACTION_COMMIT:
    case STM_TRANSACTION_ABORT:
        *state = 0;
        break;
    case STM_CONTENTION_WRITE_READ:
        *state |= AFTER_WRITE_READ;
        break;
    case STM_GC_MINOR_START:
        *state |= IN_MINOR_GC;
        break;
    case STM_GC_MINOR_DONE:
        violations += before & (IN_MINOR_GC | IS_NEW) ? 0 : 1;
        break;
    case STM_WAIT_DONE:
        violations += before & (IN_WAIT | IS_NEW) ? 0 : 1;
        *state &= (uint8_t)~IN_WAIT;
        break;
    default:
        if (stm_is_wait(event))
            *state |= IN_WAIT;
        break;
    }
    return violations;
}

static bool has_payload(const struct stm_record *record)
{
    return record->length1 != 0;
}

void stm_detector_add(struct stm_detector *detector, const struct stm_record *record)
{
    uint32_t at = record->thread % STM_DETECTOR_THREADS;

    if (detector->threads[at].thread != record->thread) {
        detector->threads[at].thread = record->thread;
        memset(detector->threads[at].states, IS_NEW, STM_CANDIDATES);
    }
    if (record->number >= FIRST_RESEARCH_EVENT) {
        detector->research_events++;
        detector->payloads_of_16 += record->number == FIRST_RESEARCH_EVENT && has_payload(record);
        for (int candidate = 0; candidate < STM_CANDIDATES - 1; candidate++)
            detector->violations[candidate]++;
        return;
    }
    for (int candidate = 0; candidate < STM_CANDIDATES; candidate++) {
        const struct stm_table *table = stm_table(candidates[candidate]);
        uint32_t violations = 0;
        if (record->number >= table->size)
            violations = 1;
        else
            violations =
                follow(&detector->threads[at].states[candidate], table->events[record->number]);
        if (has_payload(record) && !(table->payloads >> record->number & 1))
            violations++;
        detector->violations[candidate] += violations;
    }
}

enum stm_table_id stm_detector_table(const struct stm_detector *detector)
{
    int best = STM_CANDIDATES - 1;

    for (int candidate = STM_CANDIDATES - 2; candidate >= 0; candidate--) {
        if (detector->violations[candidate] < detector->violations[best])
            best = candidate;
    }
    if (candidates[best] != STM_TABLE_E16 || !detector->research_events)
        return candidates[best];
    // Durations begin at 16 in the tables without the event that took this number later.
    return detector->payloads_of_16 ? STM_TABLE_X28 : STM_TABLE_X29;
}
