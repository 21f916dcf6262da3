// Reads an STM log piece by piece: finds its layout, its records and its table, and adds them up.
//
// A log can go over into another one. A second process that opens the same file cuts it and writes
// from its beginning, while the first one continues at its old place; between the two there are NUL
// bytes or half a record. What follows such a gap is a part of its own, with threads of its own.
// What is found does not depend on the pieces in which the bytes come.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "account.h"
#include "detect.h"
#include "events.h"
#include "layout.h"

// What comes behind the last of them is skipped and counted.
#define STM_MOST_PARTS 16

struct stm_options {
    // STM_TABLES: found out.
    enum stm_table_id table;
    // Negative: those that belong to the table.
    int semantics;
    enum stm_rules rules;
    // For each part that is known from an earlier reading; without any they are found as they come.
    const struct stm_scale *scales;
    size_t scale_count;
    // Random, so that no log can be made to be slow.
    uint64_t secret;
};

struct stm_gap {
    // Of the first byte that is no record.
    uint64_t offset;
    uint64_t nul_bytes;
    uint64_t bytes;
};

struct stm_part {
    struct stm_account account;
    // Only until the table is known, as are the records.
    struct stm_detector *detector;
    uint8_t *stored;
    size_t stored_bytes;
    size_t stored_capacity;
    enum stm_table_id table;
    // In front of it; without bytes where only the clock tells that another log begins.
    struct stm_gap gap;
    uint64_t offset;
    uint64_t records;
    uint64_t counts[STM_EVENT_NUMBERS];
    uint64_t markers[STM_EVENT_NUMBERS];
    uint64_t first_ns;
    uint64_t last_ns;
    uint64_t newest_ns;
    uint64_t oldest_ns;
    uint64_t backward_steps;
    uint32_t largest_thread;
};

enum stm_log_state {
    STM_IN_HEADER,
    // A C7 log whose first records have to tell the layout.
    STM_IN_LAYOUT,
    STM_IN_RECORDS,
    STM_IN_GAP,
    // The bytes do not begin like an STM log.
    STM_NOT_A_LOG,
};

struct stm_log {
    enum stm_log_state state;
    enum stm_layout layout;
    struct stm_options options;
    // How many entries there is room for, over all parts.
    uint32_t room;
    // Read but not understood without what follows.
    uint8_t *pending;
    size_t pending_bytes;
    // Of the first byte that is not understood yet.
    uint64_t offset;
    struct stm_gap gap;
    bool gap_is_nul;
    bool has_ended;
    bool has_failed;
    // Bytes of the record that the log ends in.
    uint64_t cut_tail_bytes;
    struct stm_part *parts[STM_MOST_PARTS];
    size_t part_count;
};

// The scales of *options* are used until the log is freed. Returns whether there was memory.
bool stm_log_init(struct stm_log *log, const struct stm_options *options);
void stm_log_free(struct stm_log *log);

// Takes the next *length* bytes of the log. Returns whether there was memory.
bool stm_log_feed(struct stm_log *log, const uint8_t *bytes, size_t length);

// Says that nothing follows. Returns whether there was memory.
bool stm_log_finish(struct stm_log *log);

// Returns the sums of the part as far as it has been read, to be given back with
// stm_part_account_done, or NULL if there is no memory. It is the part's own account, or, as long
// as the table is not known, one that is made for the table that is the likeliest so far.
struct stm_account *stm_part_account(const struct stm_log *log, struct stm_part *part,
                                     enum stm_table_id *table);
void stm_part_account_done(struct stm_part *part, struct stm_account *account);
