// Lets libFuzzer look for bytes that crash the reader of STM logs, or that make it contradict
// itself.
//
// The first bytes of an input choose the options, the header and the pieces; the rest is the log.
// It is read once as a whole and once in pieces, between which the sums are asked for, and both
// must come to the same. What the Python module makes objects of is read byte by byte, so that
// whatever lies beyond what there is would be seen.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define OPTION_BYTES 3
// At one input: with more of them too few inputs are tried.
#define MOST_LOOKS 8

static void check(bool is_true, const char *what)
{
    if (is_true)
        return;
    fprintf(stderr, "contradiction: %s\n", what);
    abort();
}

static bool is_corrected(const struct stm_account *account)
{
    return account->rules == STM_CORRECTED && account->semantics != STM_S0;
}

static void check_part(const struct stm_part *part, const struct stm_account *account)
{
    uint64_t lost_ns = account->totals.unexplained_ns, paused_ns = 0, wait_ns = 0, records = 0;

    for (int number = 0; number < STM_EVENT_NUMBERS; number++)
        records += part->counts[number];
    check(records == part->records, "the counts of events add up to the records");
    check(part->oldest_ns <= part->newest_ns, "a span is not negative");
    if (!is_corrected(account))
        return;
    for (uint32_t number = 0; number < account->entries.count; number++) {
        lost_ns += account->entries.list[number]->lost_ns;
        paused_ns += account->entries.list[number]->paused_ns;
    }
    for (int event = 0; event < STM_EVENTS; event++)
        wait_ns += account->totals.wait_ns[event];
    check(lost_ns == account->totals.aborted_ns, "what conflicts lost is what was aborted");
    check(paused_ns <= wait_ns, "no pause is charged twice");
    check(account->totals.paused_ns <= wait_ns, "pauses are waits");
}

// What was read is kept, so that the compiler does not leave it out.
static volatile uint64_t sum_of_all;

static void read_all(const void *bytes, size_t length)
{
    uint64_t sum = 0;

    for (size_t at = 0; at < length; at++)
        sum += ((const uint8_t *)bytes)[at];
    sum_of_all = sum_of_all + sum;
}

static void read_name(const char *name)
{
    check(name != NULL, "there is a name");
    check(name[0] != 0, "a name is not empty");
    read_all(name, strlen(name));
}

static void read_counts(const struct stm_table *table, const uint64_t *counts)
{
    for (int number = 0; number < STM_EVENT_NUMBERS; number++)
        if (counts[number])
            read_name(stm_event_name((enum stm_event)table->events[number]));
}

static void read_series(const struct stm_series *series, const struct stm_scale *scale)
{
    struct stm_series aligned = *series;

    if (!scale->cells)
        stm_series_align(&aligned, scale);
    read_all(aligned.bins, sizeof(aligned.bins));
}

static void read_entries(const struct stm_account *account)
{
    uint64_t counted = 0;

    for (uint32_t number = 0; number < account->entries.count; number++) {
        const struct stm_entry *entry = account->entries.list[number];
        check(entry->event < STM_UNKNOWN_EVENT, "a conflict has an event");
        check(!entry->is_rest || !(entry->length1 || entry->length2), "a rest has no places");
        read_name(stm_event_name((enum stm_event)entry->event));
        read_all(entry->markers, (size_t)entry->length1 + entry->length2);
        read_series(&entry->series, &account->scale);
        counted += entry->count;
    }
    check(account->entries.count == 0 || counted > 0, "an entry was counted");
}

static void read_part(const struct stm_part *part, const struct stm_account *account,
                      enum stm_table_id id)
{
    const struct stm_table *table = stm_table(id);

    read_name(table->name);
    read_counts(table, part->counts);
    read_counts(table, part->markers);
    for (int event = 0; event < STM_EVENTS; event++)
        if (account->totals.waits[event])
            read_name(stm_event_name((enum stm_event)event));
    read_all(&account->totals, sizeof(account->totals));
    read_series(&account->commits, &account->scale);
    read_series(&account->aborts, &account->scale);
    read_entries(account);
    check(account->totals.unlogged_commit_ns <= stm_account_unfinished_ns(account),
          "a commit without a record is in the time without an end");
}

static void look(const struct stm_log *log)
{
    if (log->part_count)
        read_name(stm_shapes[log->layout].name);
    for (size_t number = 0; number < log->part_count; number++) {
        enum stm_table_id table;
        struct stm_account *account = stm_part_account(log, log->parts[number], &table);
        check(account != NULL, "there is memory");
        check_part(log->parts[number], account);
        read_part(log->parts[number], account, table);
        stm_part_account_done(log->parts[number], account);
    }
}

static void check_equal(const struct stm_log *one, const struct stm_log *other)
{
    check(one->part_count == other->part_count, "as many parts");
    check(one->offset + one->pending_bytes == other->offset + other->pending_bytes, "all bytes");
    check(one->pending_bytes == other->pending_bytes, "the same cut tail");
    check(memcmp(&one->gap, &other->gap, sizeof(one->gap)) == 0, "the same gap");
    for (size_t number = 0; number < one->part_count; number++) {
        const struct stm_part *first = one->parts[number], *second = other->parts[number];
        check(first->table == second->table, "the same table");
        check(first->offset == second->offset, "the same beginning");
        check(first->records == second->records, "as many records");
        check(memcmp(&first->account.totals, &second->account.totals,
                     sizeof(first->account.totals)) == 0,
              "the same totals");
        check(first->account.entries.count == second->account.entries.count, "as many entries");
    }
}

static void read_whole(struct stm_log *log, const struct stm_options *options,
                       const uint8_t *header, const uint8_t *bytes, size_t length)
{
    check(stm_log_init(log, options), "there is memory");
    check(stm_log_feed(log, header, header ? STM_HEADER_BYTES : 0), "there is memory");
    check(stm_log_feed(log, bytes, length), "there is memory");
    check(stm_log_finish(log), "there is memory");
    look(log);
}

static void read_in_pieces(struct stm_log *log, const struct stm_options *options,
                           const uint8_t *header, const uint8_t *bytes, size_t length, size_t piece,
                           size_t looks_every)
{
    check(stm_log_init(log, options), "there is memory");
    check(stm_log_feed(log, header, header ? STM_HEADER_BYTES : 0), "there is memory");
    for (size_t at = 0; at < length; at += piece) {
        size_t taken = length - at < piece ? length - at : piece;
        // A copy of its own, so that reading beyond its end is seen.
        uint8_t *copy = malloc(taken);
        memcpy(copy, bytes + at, taken);
        check(stm_log_feed(log, copy, taken), "there is memory");
        free(copy);
        if (at / piece % looks_every == 0)
            look(log);
    }
    look(log);
    check(stm_log_finish(log), "there is memory");
    look(log);
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

// Where the records of the log begin, of which the input has the header.
static size_t find_records(const uint8_t *data, size_t size, size_t *starts, size_t most)
{
    enum stm_layout layout = data[OPTION_BYTES + 7] == '7' ? STM_L7 : STM_L8;
    struct stm_record record;
    size_t count = 0, at = OPTION_BYTES + STM_HEADER_BYTES;

    while (count < most && stm_parse(layout, data + at, size - at, &record) == STM_PARSED) {
        starts[count++] = at;
        at += record.size;
    }
    starts[count] = at;
    return count;
}

// Changes whole records as often as bytes: what matters is the order of events in a thread.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    size_t starts[257], count = 0;

    if (seed & 1 && size > OPTION_BYTES + STM_HEADER_BYTES)
        count = find_records(data, size, starts, 256);
    if (!count)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t chosen = starts[seed / 64 % count], other = starts[seed / 8192 % count];
    size_t length = starts[seed / 64 % count + 1] - chosen;
    uint32_t event = data[OPTION_BYTES + 7] == '7' ? 16 : 12;
    switch (seed / 2 % 4) {
    case 0:
        data[chosen + event] = (uint8_t)(seed / 16384 % 30);
        return size;
    case 1:
        data[chosen + 8] = (uint8_t)(1 + seed / 16384 % 5);
        return size;
    case 2:
        memmove(data + chosen, data + chosen + length, size - chosen - length);
        return size - length;
    default:
        if (size + length > max_size)
            return size;
        uint8_t copy[STM_LARGEST_RECORD];
        memcpy(copy, data + chosen, length);
        memmove(data + other + length, data + other, size - other);
        memcpy(data + other, copy, length);
        return size + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t *headers[] = {(const uint8_t *)"STMGC-C8-PROF01\n",
                                       (const uint8_t *)"STMGC-C7-PROF01\n", NULL};
    static const size_t pieces[] = {1, 5, 14, 100, 1000, 4096};
    struct stm_log whole, divided;

    if (size < OPTION_BYTES)
        return 0;
    const struct stm_scale scale = {.total_ns = data[2] * 1000000, .cells = 6, .has_origin = true};
    const struct stm_options options = {
        .table = (enum stm_table_id)(
            data[0] % (2 * STM_TABLES) < STM_TABLES ? data[0] % (2 * STM_TABLES) : STM_TABLES),
        .semantics = data[1] % 4 - 1,
        .rules = data[1] & 4 ? STM_ORIGINAL : STM_CORRECTED,
        .scales = &scale,
        .scale_count = data[1] & 8 ? 1 : 0,
        .secret = UINT64_C(0x123456789abcdef),
    };
    const uint8_t *header = headers[(data[1] >> 4) % 3];
    const size_t piece = pieces[data[2] % 6];
    read_whole(&whole, &options, header, data + OPTION_BYTES, size - OPTION_BYTES);
    read_in_pieces(&divided, &options, header, data + OPTION_BYTES, size - OPTION_BYTES, piece,
                   1 + (size - OPTION_BYTES) / piece / MOST_LOOKS);
    check_equal(&whole, &divided);
    stm_log_free(&whole);
    stm_log_free(&divided);
    return 0;
}
