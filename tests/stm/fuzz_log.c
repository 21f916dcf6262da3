// Lets libFuzzer look for bytes that crash the reader of STM logs, or that make it contradict
// itself.
//
// The first bytes of an input choose the options, the header and the pieces; the rest is the log.
// It is read once as a whole and once in pieces, between which the sums are asked for, and both
// must come to the same.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define OPTION_BYTES 3

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

static void look(const struct stm_log *log)
{
    for (size_t number = 0; number < log->part_count; number++) {
        enum stm_table_id table;
        struct stm_account *account = stm_part_account(log, log->parts[number], &table);
        check(account != NULL, "there is memory");
        check_part(log->parts[number], account);
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
                           const uint8_t *header, const uint8_t *bytes, size_t length, size_t piece)
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
        if (at / piece % 64 == 63)
            look(log);
    }
    check(stm_log_finish(log), "there is memory");
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
    read_whole(&whole, &options, header, data + OPTION_BYTES, size - OPTION_BYTES);
    read_in_pieces(&divided, &options, header, data + OPTION_BYTES, size - OPTION_BYTES,
                   pieces[data[2] % 6]);
    check_equal(&whole, &divided);
    stm_log_free(&whole);
    stm_log_free(&divided);
    return 0;
}
