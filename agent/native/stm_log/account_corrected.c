// The corrected rules: S1 and S2 without what the original loses.
//
//   lost    = run time of a transaction that aborts, charged to the last conflict that it had, also
//             when there was a pause in between, and up to the abort itself
//   paused  = waits, charged to the conflict that they are for: a wait for the other side of a
//             contention, or for another inevitable transaction, also when it ends in an abort. The
//             other waits of a transaction that aborts go to the conflict that aborts it
//
// A moment of a thread is in one of: committed, aborted, paused, detached, paused outside (it waits
// and has no transaction), unfinished (of transactions without an end in the log).

#include <stddef.h>

#include "account.h"

static struct stm_entry *conflict_of(struct stm_account *account, const struct stm_thread *thread)
{
    return thread->conflict == STM_NO_ENTRY ? NULL : account->entries.list[thread->conflict];
}

// Returns the entry of the conflict that a wait which ends now was for, or NULL.
static struct stm_entry *entry_of_wait(struct stm_account *account, const struct stm_thread *thread)
{
    if (thread->wait_event == STM_WAIT_OTHER_INEVITABLE && thread->kept_event != STM_EVENTS)
        return stm_count_kept(account, thread);
    if (thread->wait_event == STM_WAIT_CONTENTION && thread->is_conflict_local)
        return conflict_of(account, thread);
    return NULL;
}

static void leave_pause(struct stm_account *account, struct stm_thread *thread, uint64_t lasted_ns)
{
    account->totals.wait_ns[thread->wait_event] += lasted_ns;
    account->totals.waits[thread->wait_event]++;
    if (thread->state == STM_PAUSED_OUTSIDE) {
        account->totals.paused_outside_ns += lasted_ns;
        return;
    }
    thread->pause_ns += lasted_ns;
    struct stm_entry *entry = entry_of_wait(account, thread);
    if (entry) {
        entry->paused_ns += lasted_ns;
        thread->charged_ns += lasted_ns;
    }
}

static void enter(struct stm_account *account, const struct stm_step *step,
                  enum stm_thread_state state)
{
    struct stm_thread *thread = step->thread;
    uint64_t lasted_ns = stm_elapsed(thread->since_ns, step->now_ns);

    switch (thread->state) {
    case STM_RUNNING:
        thread->run_ns += lasted_ns;
        break;
    case STM_PAUSED:
    case STM_PAUSED_OUTSIDE:
        leave_pause(account, thread, lasted_ns);
        break;
    case STM_DETACHED:
        account->totals.detached_ns += lasted_ns;
        break;
    default:
        break;
    }
    thread->state = (uint8_t)state;
    thread->since_ns = step->now_ns;
}

// Goes to *state*, in a transaction that began unseen if none is known of.
static void enter_transaction(struct stm_account *account, const struct stm_step *step,
                              enum stm_thread_state state)
{
    enter(account, step, state);
    step->thread->is_in_transaction = true;
}

static void forget_transaction(struct stm_thread *thread)
{
    thread->is_in_transaction = false;
    thread->run_ns = 0;
    thread->pause_ns = 0;
    thread->charged_ns = 0;
    thread->conflict = STM_NO_ENTRY;
    thread->kept_event = STM_EVENTS;
}

// Whether the open transaction of the thread cannot be aborted any more: it has tried to become
// inevitable, and neither waits for another one that is so, nor has had a conflict.
static bool is_inevitable(const struct stm_thread *thread)
{
    return thread->is_in_transaction && thread->kept_event != STM_EVENTS &&
           thread->state != STM_PAUSED && thread->conflict == STM_NO_ENTRY;
}

static void start(struct stm_account *account, const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;

    bool must_be_committed = is_inevitable(thread);

    enter(account, step, STM_RUNNING);
    uint64_t open_ns = thread->run_ns + thread->pause_ns;
    account->totals.unfinished_ns += open_ns;
    if (must_be_committed) {
        account->totals.unlogged_commit_ns += open_ns;
        account->totals.unlogged_commits++;
    }
    forget_transaction(thread);
    thread->is_in_transaction = true;
}

static int slot_of(uint64_t ns)
{
    static const uint64_t steps[] = STM_STEPS;
    uint64_t below = ns - (ns > 0);

    if (!(below >> (STM_OCTAVE_BITS + 1)))
        return (int)below;
    int high = 63 - __builtin_clzll(below);
    uint64_t mantissa = below << (63 - high) >> (63 - STM_STEP_BITS);
    int slot = (high - STM_OCTAVE_BITS + 1) << STM_OCTAVE_BITS;

    for (size_t step = 0; step < sizeof(steps) / sizeof(*steps); step++)
        slot += mantissa >= steps[step];
    return slot;
}

static void count_in(uint64_t *slots, uint64_t ns)
{
    int slot = slot_of(ns);

    slots[slot < STM_SLOTS ? slot : STM_SLOTS - 1]++;
}

static void commit(struct stm_account *account, const struct stm_step *step)
{
    struct stm_totals *totals = &account->totals;

    enter(account, step, STM_OUTSIDE);
    totals->commits++;
    totals->committed_ns += step->thread->run_ns;
    totals->paused_ns += step->thread->pause_ns;
    totals->cpu_ns += step->thread->run_ns;
    count_in(totals->committed_slots, step->thread->run_ns);
    forget_transaction(step->thread);
}

static void abort_transaction(struct stm_account *account, const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;
    struct stm_totals *totals = &account->totals;

    enter(account, step, STM_OUTSIDE);
    totals->aborts++;
    totals->aborted_ns += thread->run_ns;
    totals->paused_ns += thread->pause_ns;
    totals->cpu_ns += thread->run_ns;
    count_in(totals->aborted_slots, thread->run_ns);
    struct stm_entry *entry = conflict_of(account, thread);
    if (entry) {
        entry->lost_ns += thread->run_ns;
        entry->paused_ns += thread->pause_ns - thread->charged_ns;
    } else {
        totals->unexplained_ns += thread->run_ns;
        totals->unexplained++;
    }
    // A collection that an abort has cut short has no end.
    thread->major_gc_ns = STM_NEVER;
    forget_transaction(thread);
}

static void contention(struct stm_account *account, const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;
    struct stm_key key = stm_key_of(step);

    enter_transaction(account, step, STM_RUNNING);
    stm_count_conflict(account, &key, step->now_ns, &thread->conflict);
    thread->is_conflict_local = true;
    thread->conflict_thread = step->record->other_thread;
}

static void abort_other(struct stm_account *account, const struct stm_step *step)
{
    uint32_t number = step->thread->conflict;

    if (number == STM_NO_ENTRY || !step->thread->is_conflict_local)
        return;
    step->thread->conflict = STM_NO_ENTRY;
    struct stm_thread *other = stm_threads_find(&account->threads, step->thread->conflict_thread);
    if (other && other->is_in_transaction) {
        other->conflict = number;
        other->is_conflict_local = false;
    }
}

static void wait(struct stm_account *account, const struct stm_step *step)
{
    bool is_inside =
        step->thread->is_in_transaction || (step->is_first && step->event != STM_WAIT_FREE_SEGMENT);

    enter(account, step, is_inside ? STM_PAUSED : STM_PAUSED_OUTSIDE);
    step->thread->is_in_transaction = is_inside;
    step->thread->wait_event = (uint8_t)step->event;
}

static void gc(struct stm_account *account, const struct stm_step *step)
{
    // The transaction that a log begins in began unseen.
    if (step->is_first)
        enter_transaction(account, step, STM_RUNNING);
    else if (step->event == STM_GC_MINOR_START && step->thread->state == STM_DETACHED)
        enter(account, step, STM_RUNNING);
    stm_add_gc(account, step);
}

void stm_add_corrected(struct stm_account *account, const struct stm_step *step)
{
    switch (step->event) {
    case STM_TRANSACTION_START:
        start(account, step);
        break;
    case STM_TRANSACTION_COMMIT:
        commit(account, step);
        break;
    case STM_TRANSACTION_ABORT:
        abort_transaction(account, step);
        break;
    case STM_TRANSACTION_DETACH:
        enter_transaction(account, step, STM_DETACHED);
        break;
    case STM_TRANSACTION_REATTACH:
    case STM_BECOME_INEVITABLE:
        enter_transaction(account, step, STM_RUNNING);
        stm_keep(step);
        break;
    case STM_CONTENTION_WRITE_WRITE:
    case STM_CONTENTION_WRITE_READ:
    case STM_CONTENTION_INEVITABLE:
        contention(account, step);
        break;
    case STM_ABORTING_OTHER_CONTENTION:
        abort_other(account, step);
        break;
    case STM_WAIT_DONE:
        if (step->thread->is_in_transaction || step->is_first)
            enter_transaction(account, step, STM_RUNNING);
        else
            enter(account, step, STM_OUTSIDE);
        break;
    case STM_GC_MINOR_START:
    case STM_GC_MINOR_DONE:
    case STM_GC_MAJOR_START:
    case STM_GC_MAJOR_DONE:
        gc(account, step);
        break;
    default:
        if (stm_is_wait(step->event))
            wait(account, step);
        break;
    }
}
