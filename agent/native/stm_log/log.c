#include "log.h"

#include <stdlib.h>
#include <string.h>

#include "part.h"

// What a record may need of those behind it, and a piece more, so that it is rarely refilled.
#define PENDING_CAPACITY 65536
#define RECORDS_IN_RUN 8
// At the very end of a log so many will do.
#define LEAST_RECORDS_IN_RUN 3
// The first records tell the layout of a C7 log.
#define BYTES_FOR_LAYOUT 8192
#define RECORDS_FOR_LAYOUT 12
// What a sound log hardly ever does, so that the records behind are checked as well.
#define DOUBTFUL_STEP_NS (3600 * STM_NS_PER_S)
#define DOUBTFUL_THREADS 1024
#define DOUBTFUL_NUMBER 29
#define RECORDS_AGAINST_DOUBT 3
// C7 goes back by what a thread can wait for the lock of the file; more is another process.
#define OTHER_LOG_STEP_NS STM_NS_PER_S

bool stm_log_init(struct stm_log *log, const struct stm_options *options)
{
    *log = (struct stm_log){.options = *options, .room = STM_MOST_ENTRIES};
    log->pending = malloc(PENDING_CAPACITY);
    return log->pending != NULL;
}

void stm_log_free(struct stm_log *log)
{
    for (size_t number = 0; number < log->part_count; number++)
        stm_part_free(log->parts[number]);
    free(log->pending);
}

static struct stm_part *last_part(struct stm_log *log)
{
    return log->parts[log->part_count - 1];
}

static bool begin_part(struct stm_log *log, uint64_t offset)
{
    if (log->part_count) {
        stm_part_decide(log, last_part(log));
        // There is nothing more to come of it, and this is most of what it has taken.
        stm_account_close(&last_part(log)->account);
    }
    struct stm_part *part = stm_part_new(log, offset);
    if (!part)
        return false;
    log->parts[log->part_count++] = part;
    log->gap = (struct stm_gap){0};
    return true;
}

// Returns how many of *length* bytes were understood, here and in all that follow: those that
// remain come again with what is behind them. At the end of the log nothing is.
static size_t read_header(struct stm_log *log, const uint8_t *bytes, size_t length)
{
    static const char c7[] = "STMGC-C7-PROF01\n", c8[] = "STMGC-C8-PROF01\n";
    size_t known = length < STM_HEADER_BYTES ? length : STM_HEADER_BYTES;
    bool is_c8 = memcmp(bytes, c8, known) == 0;

    if (!is_c8 && memcmp(bytes, c7, known) != 0) {
        log->state = STM_NOT_A_LOG;
        return length;
    }
    if (length < STM_HEADER_BYTES)
        return 0;
    log->layout = is_c8 ? STM_L8 : STM_L7;
    log->state = is_c8 ? STM_IN_RECORDS : STM_IN_LAYOUT;
    // Also of a log without records there is something to be said.
    if (is_c8 && !begin_part(log, STM_HEADER_BYTES))
        log->has_failed = true;
    return STM_HEADER_BYTES;
}

static bool fits(enum stm_layout layout, const uint8_t *bytes, size_t length)
{
    return stm_run(layout, STM_HEADS_AND_MARKERS, bytes, length, true, RECORDS_FOR_LAYOUT) != 0;
}

static void read_layout(struct stm_log *log, const uint8_t *bytes, size_t length, bool is_end)
{
    if (length < BYTES_FOR_LAYOUT && !is_end)
        return;
    if (length > BYTES_FOR_LAYOUT)
        length = BYTES_FOR_LAYOUT;
    log->layout = STM_L7;
    if (!fits(STM_L7, bytes, length) && fits(STM_L7A, bytes, length))
        log->layout = STM_L7A;
    log->state = STM_IN_RECORDS;
    if (!begin_part(log, STM_HEADER_BYTES))
        log->has_failed = true;
}

static void begin_gap(struct stm_log *log, uint64_t offset)
{
    log->state = STM_IN_GAP;
    log->gap = (struct stm_gap){.offset = offset};
    log->gap_is_nul = true;
}

static bool is_doubtful(const struct stm_part *part, const struct stm_record *record)
{
    if (record->number >= DOUBTFUL_NUMBER ||
        ((record->length1 || record->length2) && !stm_has_known_markers(record)))
        return true;
    if (!part->records)
        return false;
    return record->time_ns > part->last_ns + DOUBTFUL_STEP_NS ||
           record->time_ns + OTHER_LOG_STEP_NS <= part->last_ns ||
           record->thread > part->largest_thread + DOUBTFUL_THREADS;
}

static bool is_of_another_log(const struct stm_part *part, const struct stm_record *record)
{
    return part->records && record->time_ns + OTHER_LOG_STEP_NS <= part->last_ns;
}

static void take(struct stm_log *log, const struct stm_record *record)
{
    struct stm_part *part = last_part(log);

    stm_part_count(part, record);
    if (!part->detector)
        stm_account_add(&part->account, record);
    else if (!stm_part_store(log, part, record))
        log->has_failed = true;
    if (part->account.has_failed)
        log->has_failed = true;
}

static inline size_t read_records(struct stm_log *log, enum stm_layout layout, const uint8_t *bytes,
                                  size_t length, bool is_end)
{
    struct stm_record record;
    size_t at = 0;

    while (!log->has_failed) {
        enum stm_parse parsed = stm_parse(layout, bytes + at, length - at, &record);
        if (parsed == STM_CUT)
            break;
        if (parsed == STM_IMPOSSIBLE) {
            begin_gap(log, log->offset + at);
            break;
        }
        if (is_doubtful(last_part(log), &record)) {
            size_t run =
                stm_run(layout, STM_HEADS, bytes + at, length - at, is_end, RECORDS_AGAINST_DOUBT);
            if (run == STM_RUN_NEEDS_MORE)
                break;
            if (!run || is_of_another_log(last_part(log), &record)) {
                // Where a run of another log begins, the gap ends before its first byte.
                begin_gap(log, log->offset + at);
                break;
            }
        }
        take(log, &record);
        at += record.size;
    }
    return at;
}

// The layout is a constant wherever records are read, so that it costs nothing for each of them.
static size_t read_records_of_layout(struct stm_log *log, const uint8_t *bytes, size_t length,
                                     bool is_end)
{
    switch (log->layout) {
    case STM_L8:
        return read_records(log, STM_L8, bytes, length, is_end);
    case STM_L7:
        return read_records(log, STM_L7, bytes, length, is_end);
    default:
        return read_records(log, STM_L7A, bytes, length, is_end);
    }
}

static size_t count_nul(const uint8_t *bytes, size_t length)
{
    size_t at = 0;

    for (uint64_t word; length - at >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, bytes + at, sizeof(word));
        if (word)
            break;
    }
    while (at < length && !bytes[at])
        at++;
    return at;
}

// Returns at how many of the bytes no record can begin, because its thread would be 0: a file can
// have holes of any size, which cost nothing to make.
static size_t skip_nul(const uint8_t *bytes, size_t length)
{
    size_t count = count_nul(bytes, length);

    return count >= STM_THREAD_END ? count - STM_THREAD_END + 1 : 0;
}

static size_t read_gap(struct stm_log *log, const uint8_t *bytes, size_t length, bool is_end)
{
    size_t at = 0;

    for (; at < length; at++) {
        size_t run = 0, skipped = skip_nul(bytes + at, length - at);
        at += skipped;
        log->gap.nul_bytes += log->gap_is_nul ? skipped : 0;
        log->gap.bytes += skipped;
        if (log->part_count < STM_MOST_PARTS)
            run = stm_run(log->layout, STM_HEADS_AND_MARKERS, bytes + at, length - at, is_end,
                          RECORDS_IN_RUN);
        if (run == STM_RUN_NEEDS_MORE)
            break;
        if (run >= (is_end ? LEAST_RECORDS_IN_RUN : RECORDS_IN_RUN)) {
            log->state = STM_IN_RECORDS;
            if (!begin_part(log, log->offset + at))
                log->has_failed = true;
            break;
        }
        log->gap_is_nul = log->gap_is_nul && bytes[at] == 0;
        log->gap.nul_bytes += log->gap_is_nul;
        log->gap.bytes++;
    }
    return at;
}

static size_t read_bytes(struct stm_log *log, const uint8_t *bytes, size_t length, bool is_end)
{
    size_t at = 0;

    for (;;) {
        enum stm_log_state before = log->state;
        size_t taken = 0;
        switch (before) {
        case STM_IN_HEADER:
            taken = length > at ? read_header(log, bytes + at, length - at) : 0;
            break;
        case STM_IN_LAYOUT:
            read_layout(log, bytes + at, length - at, is_end);
            break;
        case STM_IN_RECORDS:
            taken = read_records_of_layout(log, bytes + at, length - at, is_end);
            break;
        case STM_IN_GAP:
            taken = read_gap(log, bytes + at, length - at, is_end);
            break;
        case STM_NOT_A_LOG:
            taken = length - at;
            break;
        }
        at += taken;
        log->offset += taken;
        if (log->state == before || log->has_failed)
            return at;
    }
}

// Reads what is pending together with the beginning of *bytes* until what is pending is understood.
// Returns how many of *bytes* were.
static size_t read_pending(struct stm_log *log, const uint8_t *bytes, size_t length)
{
    size_t before = log->pending_bytes;
    size_t added = PENDING_CAPACITY - before;

    if (added > length)
        added = length;
    memcpy(log->pending + before, bytes, added);
    size_t taken = read_bytes(log, log->pending, before + added, false);
    if (taken >= before) {
        log->pending_bytes = 0;
        return taken - before;
    }
    log->pending_bytes = before + added - taken;
    memmove(log->pending, log->pending + taken, log->pending_bytes);
    return added;
}

bool stm_log_feed(struct stm_log *log, const uint8_t *bytes, size_t length)
{
    while (length && log->pending_bytes && !log->has_failed) {
        size_t taken = read_pending(log, bytes, length);
        bytes += taken;
        length -= taken;
    }
    if (!length || log->has_failed)
        return !log->has_failed;
    size_t taken = read_bytes(log, bytes, length, false);
    if (log->has_failed)
        return false;
    // Never more than a run of records needs.
    log->pending_bytes = length - taken;
    memcpy(log->pending, bytes + taken, log->pending_bytes);
    return true;
}

// The original takes a record whose marker is cut for one with a shorter marker.
static void take_cut_record(struct stm_log *log)
{
    size_t head = stm_shapes[log->layout].head;
    struct stm_record record;

    if (stm_parse(log->layout, log->pending, log->pending_bytes, &record) != STM_CUT ||
        log->pending_bytes < head)
        return;
    size_t left = log->pending_bytes - head;
    if (record.length1 > left)
        record.length1 = (uint8_t)left;
    record.length2 = (uint8_t)(left - record.length1);
    stm_account_add(&last_part(log)->account, &record);
}

bool stm_log_finish(struct stm_log *log)
{
    if (log->has_ended || log->has_failed)
        return !log->has_failed;
    log->has_ended = true;
    size_t taken = read_bytes(log, log->pending, log->pending_bytes, true);
    log->pending_bytes -= taken;
    memmove(log->pending, log->pending + taken, log->pending_bytes);
    log->cut_tail_bytes = log->pending_bytes;
    if (log->part_count) {
        stm_part_decide(log, last_part(log));
        if (log->state == STM_IN_RECORDS && log->options.rules == STM_ORIGINAL)
            take_cut_record(log);
    }
    return !log->has_failed;
}
