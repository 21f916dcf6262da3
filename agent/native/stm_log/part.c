#include "part.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_STORED_BYTES 65536
// With the longest markers that is some thousands of records.
#define MOST_STORED_BYTES (1 << 20)

static enum stm_semantics semantics_of(const struct stm_options *options, enum stm_table_id table)
{
    if (options->semantics >= 0)
        return (enum stm_semantics)options->semantics;
    return stm_table(table)->semantics;
}

static void begin_account(const struct stm_options *options, struct stm_account *account,
                          enum stm_table_id table, const struct stm_scale *scale, uint32_t *room)
{
    stm_account_init(account, options->rules, semantics_of(options, table), scale, room,
                     options->secret);
    account->table = stm_table(table);
}

struct stm_part *stm_part_new(struct stm_log *log, uint64_t offset)
{
    struct stm_part *part = calloc(1, sizeof(*part));
    if (!part)
        return NULL;
    bool is_c8 = log->layout == STM_L8;
    part->offset = offset;
    part->gap = log->gap;
    part->table = log->options.table;
    if (part->table == STM_TABLES && !is_c8)
        part->table = STM_TABLE_C7;
    if (part->table == STM_TABLES) {
        part->table = STM_TABLE_E16;
        part->detector = calloc(1, sizeof(*part->detector));
        if (!part->detector) {
            free(part);
            return NULL;
        }
    }
    const struct stm_scale *scale = &(struct stm_scale){0};
    if (log->part_count < log->options.scale_count)
        scale = &log->options.scales[log->part_count];
    begin_account(&log->options, &part->account, part->table, scale, &log->room);
    return part;
}

void stm_part_free(struct stm_part *part)
{
    stm_account_free(&part->account);
    free(part->detector);
    free(part->stored);
    free(part);
}

static bool store(struct stm_part *part, const struct stm_record *record, enum stm_layout layout)
{
    const uint8_t *bytes = record->marker1 - stm_shapes[layout].head;

    if (part->stored_capacity - part->stored_bytes < record->size) {
        size_t capacity = part->stored_capacity ? 2 * part->stored_capacity : FIRST_STORED_BYTES;
        uint8_t *stored = realloc(part->stored, capacity);
        if (!stored)
            return false;
        part->stored = stored;
        part->stored_capacity = capacity;
    }
    memcpy(part->stored + part->stored_bytes, bytes, record->size);
    part->stored_bytes += record->size;
    return true;
}

static void add_stored(const struct stm_part *part, struct stm_account *account,
                       enum stm_layout layout)
{
    struct stm_record record;

    for (size_t at = 0; at < part->stored_bytes; at += record.size) {
        stm_parse(layout, part->stored + at, part->stored_bytes - at, &record);
        stm_account_add(account, &record);
    }
}

void stm_part_decide(struct stm_log *log, struct stm_part *part)
{
    if (!part->detector)
        return;
    struct stm_scale scale = part->account.scale;
    part->table = stm_detector_table(part->detector);
    // It is empty so far.
    stm_account_free(&part->account);
    begin_account(&log->options, &part->account, part->table, &scale, &log->room);
    add_stored(part, &part->account, log->layout);
    free(part->detector);
    free(part->stored);
    part->detector = NULL;
    part->stored = NULL;
    part->stored_bytes = 0;
    part->stored_capacity = 0;
}

static bool is_enough(const struct stm_part *part)
{
    return part->records >= STM_RECORDS_TO_DECIDE || part->stored_bytes >= MOST_STORED_BYTES;
}

bool stm_part_store(struct stm_log *log, struct stm_part *part, const struct stm_record *record)
{
    stm_detector_add(part->detector, record);
    if (!store(part, record, log->layout))
        return false;
    if (is_enough(part))
        stm_part_decide(log, part);
    return true;
}

struct stm_account *stm_part_account(const struct stm_log *log, struct stm_part *part,
                                     enum stm_table_id *table)
{
    *table = part->table;
    if (!part->detector)
        return &part->account;
    struct stm_account *account = malloc(sizeof(*account));
    uint32_t *room = malloc(sizeof(*room));
    if (!account || !room) {
        free(account);
        free(room);
        return NULL;
    }
    *room = log->room;
    *table = stm_detector_table(part->detector);
    begin_account(&log->options, account, *table, &part->account.scale, room);
    add_stored(part, account, log->layout);
    return account;
}

void stm_part_account_done(struct stm_part *part, struct stm_account *account)
{
    if (account == &part->account)
        return;
    free(account->entries.room);
    stm_account_free(account);
    free(account);
}
