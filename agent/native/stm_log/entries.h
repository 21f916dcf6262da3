// Conflicts added up by what they were about: the kind and the two places.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "events.h"
#include "series.h"

#define STM_NO_ENTRY UINT32_MAX
// A program collides at some hundreds of places. What comes after so many of them is added up
// under its kind alone, so that no log can take any amount of memory.
#ifndef STM_MOST_ENTRIES
#define STM_MOST_ENTRIES 4096
#endif

struct stm_entry {
    uint64_t lost_ns;
    uint64_t paused_ns;
    uint64_t count;
    struct stm_series series;
    uint8_t event;
    uint8_t length1;
    uint8_t length2;
    // Of places that there was no room for.
    bool is_rest;
    // The first marker and the second behind it.
    uint8_t markers[];
};

struct stm_entries {
    // What slots depend on.
    uint64_t secret;
    struct stm_entry **list;
    uint32_t *slots;
    // How many more there is room for; several accounts share it.
    uint32_t *room;
    uint32_t count;
    uint32_t capacity;
    uint32_t slot_count;
    uint32_t rest[STM_EVENTS];
};

// What an entry is found by.
struct stm_key {
    const uint8_t *marker1;
    const uint8_t *marker2;
    uint8_t event;
    uint8_t length1;
    uint8_t length2;
};

void stm_entries_init(struct stm_entries *entries, uint32_t *room, uint64_t secret);
void stm_entries_free(struct stm_entries *entries);

// Returns the number of the entry for *key*, which is made where there is none, or STM_NO_ENTRY if
// there is no memory.
uint32_t stm_entries_get(struct stm_entries *entries, const struct stm_key *key);
