// One log in a file: its records until its table is known, and its account.
#pragma once

#include "log.h"

// Returns a part that begins at *offset*, behind the log's present gap, or NULL.
struct stm_part *stm_part_new(struct stm_log *log, uint64_t offset);
void stm_part_free(struct stm_part *part);

// Takes one of the first records, while the table is not known. Returns whether there was memory.
bool stm_part_store(struct stm_log *log, struct stm_part *part, const struct stm_record *record);

// Chooses the table, if that has not been done, and adds up what was stored.
void stm_part_decide(struct stm_log *log, struct stm_part *part);

static inline void stm_part_count(struct stm_part *part, const struct stm_record *record)
{
    uint64_t now_ns = record->time_ns;

    if (!part->records) {
        part->first_ns = part->oldest_ns = part->newest_ns = now_ns;
    } else {
        part->backward_steps += now_ns < part->last_ns;
        if (now_ns > part->newest_ns)
            part->newest_ns = now_ns;
        else if (now_ns < part->oldest_ns)
            part->oldest_ns = now_ns;
    }
    part->last_ns = now_ns;
    if (record->thread > part->largest_thread)
        part->largest_thread = record->thread;
    part->records++;
    part->counts[record->number]++;
    part->markers[record->number] += record->length1 != 0 || record->length2 != 0;
}
