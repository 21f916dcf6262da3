#include "account.h"

_Static_assert(STM_LONGEST_KEPT_MARKER >= STM_LONGEST_C7_MARKER &&
                   STM_LONGEST_KEPT_MARKER >= STM_LONGEST_C8_MARKER,
               "a thread can keep every marker");

void stm_account_init(struct stm_account *account, enum stm_rules rules,
                      enum stm_semantics semantics, const struct stm_scale *scale, uint32_t *room,
                      uint64_t secret)
{
    *account = (struct stm_account){
        .table = stm_table(STM_TABLE_E16),
        .semantics = semantics,
        .rules = rules,
        .scale = *scale,
        .threads = {.secret = secret},
    };
    stm_entries_init(&account->entries, room, secret);
}

void stm_account_free(struct stm_account *account)
{
    stm_threads_free(&account->threads);
    stm_entries_free(&account->entries);
}

void stm_account_close(struct stm_account *account)
{
    account->totals.unfinished_ns = stm_account_unfinished_ns(account);
    stm_threads_free(&account->threads);
}

void stm_account_add(struct stm_account *account, const struct stm_record *record)
{
    struct stm_step step = {
        .record = record,
        .now_ns = record->time_ns,
        .event = account->table->events[record->number],
    };

    if (!account->has_records) {
        account->has_records = true;
        account->first_ns = record->time_ns;
        if (!account->scale.has_origin) {
            account->scale.has_origin = true;
            account->scale.origin_ns = record->time_ns;
        }
    }
    account->last_ns = record->time_ns;
    step.thread = stm_threads_get(&account->threads, record->thread, &step.is_first);
    if (!step.thread) {
        account->has_failed = true;
        return;
    }
    if (step.event == STM_TRANSACTION_COMMIT)
        stm_series_add(&account->commits, &account->scale, step.now_ns);
    else if (step.event == STM_TRANSACTION_ABORT)
        stm_series_add(&account->aborts, &account->scale, step.now_ns);
    if (account->rules == STM_CORRECTED && account->semantics != STM_S0)
        stm_add_corrected(account, &step);
    else if (account->semantics == STM_S2)
        stm_add_late(account, &step);
    else
        stm_add_early(account, &step);
}

uint64_t stm_account_unfinished_ns(const struct stm_account *account)
{
    uint64_t sum_ns = account->totals.unfinished_ns;

    // The original does not know of any.
    if (account->rules == STM_ORIGINAL)
        return 0;
    for (uint32_t at = 0; at < account->threads.slot_count; at++) {
        const struct stm_thread *thread = &account->threads.slots[at];
        if (thread->is_used && thread->is_in_transaction)
            sum_ns += thread->run_ns + thread->pause_ns;
    }
    return sum_ns;
}

struct stm_entry *stm_count_conflict(struct stm_account *account, const struct stm_key *key,
                                     uint64_t time_ns, uint32_t *number)
{
    *number = stm_entries_get(&account->entries, key);
    if (*number == STM_NO_ENTRY) {
        account->has_failed = true;
        return NULL;
    }
    struct stm_entry *entry = account->entries.list[*number];
    entry->count++;
    stm_series_add(&entry->series, &account->scale, time_ns);
    return entry;
}

struct stm_key stm_key_of(const struct stm_step *step)
{
    return (struct stm_key){
        .marker1 = step->record->marker1,
        .marker2 = step->record->marker2,
        .event = (uint8_t)step->event,
        .length1 = step->record->length1,
        .length2 = step->record->length2,
    };
}

void stm_keep(const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;

    if (thread->kept_event != STM_EVENTS)
        return;
    thread->kept_event = (uint8_t)step->event;
    thread->kept_ns = step->now_ns;
    thread->kept_length = step->record->length1;
    for (int at = 0; at < step->record->length1; at++)
        thread->kept_marker[at] = step->record->marker1[at];
}

struct stm_entry *stm_count_kept(struct stm_account *account, const struct stm_thread *thread)
{
    // Nothing is kept: there is no entry for that, and there must be none.
    if (thread->kept_event == STM_EVENTS)
        return NULL;
    struct stm_key key = {
        .marker1 = thread->kept_marker,
        .marker2 = thread->kept_marker,
        .event = thread->kept_event,
        .length1 = thread->kept_length,
    };
    uint32_t number;

    return stm_count_conflict(account, &key, thread->kept_ns, &number);
}

void stm_add_gc(struct stm_account *account, const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;

    switch (step->event) {
    case STM_GC_MINOR_START:
        thread->minor_gc_ns = step->now_ns;
        break;
    case STM_GC_MINOR_DONE:
        if (thread->minor_gc_ns != STM_NEVER)
            account->totals.minor_gc_ns += stm_elapsed(thread->minor_gc_ns, step->now_ns);
        thread->minor_gc_ns = STM_NEVER;
        break;
    case STM_GC_MAJOR_START:
        thread->major_gc_ns = step->now_ns;
        break;
    case STM_GC_MAJOR_DONE:
        if (thread->major_gc_ns != STM_NEVER)
            account->totals.major_gc_ns += stm_elapsed(thread->major_gc_ns, step->now_ns);
        thread->major_gc_ns = STM_NEVER;
        break;
    default:
        break;
    }
}
