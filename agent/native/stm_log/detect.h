// Finds out which table a C8 log was written with: its header does not say.
#pragma once

#include <stdint.h>

#include "events.h"
#include "layout.h"

// So many records at the beginning of a log decide.
#ifndef STM_RECORDS_TO_DECIDE
#define STM_RECORDS_TO_DECIDE 20000
#endif
#define STM_CANDIDATES 5
#ifndef STM_DETECTOR_THREADS
#define STM_DETECTOR_THREADS 4096
#endif

struct stm_detector {
    // By candidate, in the order of their ages.
    uint32_t violations[STM_CANDIDATES];
    // Numbers that only the research branches have.
    uint32_t research_events;
    uint32_t payloads_of_16;
    struct {
        uint32_t thread;
        // What the thread is in, by candidate.
        uint8_t states[STM_CANDIDATES];
    } threads[STM_DETECTOR_THREADS];
};

// Takes one more record into account.
void stm_detector_add(struct stm_detector *detector, const struct stm_record *record);

// Returns the table with the fewest violations; of several, the latest.
enum stm_table_id stm_detector_table(const struct stm_detector *detector);
