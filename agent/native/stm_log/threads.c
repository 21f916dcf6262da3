#include "threads.h"

#include <stdlib.h>
#include <string.h>

#include "entries.h"
#include "events.h"
#include "hash.h"

#define FIRST_SLOTS 16
// From here on threads that have nothing open are forgotten before the table grows.
#ifndef STM_SLOTS_BEFORE_SWEEP
#define STM_SLOTS_BEFORE_SWEEP 4096
#endif
// Half of them are used at most. stmgc runs 8 transactions at a time and lets the other threads
// wait: only a log that is no log needs more.
#define MOST_SLOTS (2 * STM_SLOTS_BEFORE_SWEEP)

void stm_threads_free(struct stm_threads *threads)
{
    free(threads->slots);
    threads->slots = NULL;
    threads->latest = NULL;
    threads->slot_count = threads->used = 0;
    for (int page = 0; page < STM_THREAD_PAGES; page++) {
        free(threads->pages[page]);
        threads->pages[page] = NULL;
    }
}

static uint32_t slot_of(const struct stm_threads *threads, uint32_t number, uint32_t slot_count)
{
    return stm_hash_end(stm_hash_add(0, threads->secret, number)) & (slot_count - 1);
}

// Returns the slot that has *number*, or the free one where it belongs.
static struct stm_thread *find_slot(const struct stm_threads *threads, struct stm_thread *slots,
                                    uint32_t slot_count, uint32_t number)
{
    uint32_t at = slot_of(threads, number, slot_count);

    while (slots[at].is_used && slots[at].number != number)
        at = (at + 1) & (slot_count - 1);
    return &slots[at];
}

struct stm_thread *stm_threads_find(const struct stm_threads *threads, uint32_t number)
{
    if (!threads->slot_count)
        return NULL;
    struct stm_thread *slot = find_slot(threads, threads->slots, threads->slot_count, number);
    return slot->is_used ? slot : NULL;
}

static bool is_idle(const struct stm_thread *thread)
{
    return thread->state == STM_OUTSIDE && !thread->is_in_transaction &&
           thread->minor_gc_ns == STM_NEVER && thread->major_gc_ns == STM_NEVER;
}

// Moves the threads to a table of *slot_count* slots, without the idle ones and those whose last
// record is older than *oldest*.
static bool move(struct stm_threads *threads, uint32_t slot_count, bool keep_idle, uint64_t oldest)
{
    struct stm_thread *slots =
        aligned_alloc(_Alignof(struct stm_thread), slot_count * sizeof(*slots));
    if (!slots)
        return false;
    memset(slots, 0, slot_count * sizeof(*slots));
    threads->used = 0;
    for (uint32_t at = 0; at < threads->slot_count; at++) {
        const struct stm_thread *thread = &threads->slots[at];
        if (!thread->is_used || thread->last_record < oldest || (!keep_idle && is_idle(thread)))
            continue;
        *find_slot(threads, slots, slot_count, thread->number) = *thread;
        threads->used++;
    }
    free(threads->slots);
    threads->slots = slots;
    threads->slot_count = slot_count;
    threads->latest = NULL;
    return true;
}

static int compare(const void *one, const void *other)
{
    uint64_t first = *(const uint64_t *)one, second = *(const uint64_t *)other;

    return (first > second) - (first < second);
}

// Returns the record since which half of the threads have not been heard of, or STM_NEVER if there
// is no memory.
static uint64_t median_record(const struct stm_threads *threads)
{
    uint64_t *records = malloc(threads->used * sizeof(*records));
    if (!records)
        return STM_NEVER;
    uint32_t count = 0;
    for (uint32_t at = 0; at < threads->slot_count; at++) {
        if (threads->slots[at].is_used)
            records[count++] = threads->slots[at].last_record;
    }
    qsort(records, count, sizeof(*records), compare);
    uint64_t median = records[count / 2];
    free(records);
    return median;
}

static bool make_room(struct stm_threads *threads)
{
    if (threads->used < threads->slot_count / 2)
        return true;
    if (!threads->slot_count)
        return move(threads, FIRST_SLOTS, true, 0);
    if (threads->slot_count < STM_SLOTS_BEFORE_SWEEP)
        return move(threads, 2 * threads->slot_count, true, 0);
    if (!move(threads, threads->slot_count, false, 0))
        return false;
    if (threads->used < threads->slot_count / 4)
        return true;
    if (threads->slot_count < MOST_SLOTS)
        return move(threads, 2 * threads->slot_count, true, 0);
    uint64_t oldest = median_record(threads);
    return oldest != STM_NEVER && move(threads, threads->slot_count, true, oldest);
}

// Notes that *number* was seen, and whether it was for the first time.
static bool note(struct stm_threads *threads, uint32_t number, bool *is_first)
{
    uint32_t **page = &threads->pages[number / STM_THREADS_PER_PAGE % STM_THREAD_PAGES];
    uint32_t bit = number % STM_THREADS_PER_PAGE;

    if (!*page && !(*page = calloc(STM_THREADS_PER_PAGE / 32, sizeof(**page))))
        return false;
    uint32_t *word = &(*page)[bit / 32];
    *is_first = !(*word >> bit % 32 & 1);
    *word |= UINT32_C(1) << bit % 32;
    threads->seen += *is_first;
    return true;
}

struct stm_thread *stm_threads_get(struct stm_threads *threads, uint32_t number, bool *is_first)
{
    *is_first = false;
    threads->records++;
    struct stm_thread *thread = threads->latest;
    if (!thread || thread->number != number) {
        thread = stm_threads_find(threads, number);
        if (!thread) {
            if (!note(threads, number, is_first) || !make_room(threads))
                return NULL;
            thread = find_slot(threads, threads->slots, threads->slot_count, number);
            *thread = (struct stm_thread){
                .number = number,
                .is_used = true,
                .kept_event = STM_EVENTS,
                .conflict = STM_NO_ENTRY,
                .pause_start_ns = STM_NEVER,
                .minor_gc_ns = STM_NEVER,
                .major_gc_ns = STM_NEVER,
            };
            threads->used++;
        }
        threads->latest = thread;
    }
    thread->last_record = threads->records;
    return thread;
}
