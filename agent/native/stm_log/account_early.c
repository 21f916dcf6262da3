// The original's rules of 2014 for C7: S0 until 2014-11-13, S1 after.
//
//   S0: lost = wall time from START to ABORT; waits are ignored
//   S1: lost = the same less pauses; a pause ends the thread's own conflict, and every abort that
//   is
//       charged to a conflict adds a microsecond to its pauses, for the sleep after an abort
//
// A conflict waits in the thread for the abort that it causes: in the one that wrote the record,
// or, when that one aborts the other, in the other.

#include "account.h"

#define SLEEP_AFTER_ABORT_NS 1000

static void start(const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;

    thread->is_in_transaction = true;
    thread->start_ns = step->now_ns;
    thread->pause_start_ns = STM_NEVER;
    thread->pause_ns = 0;
    thread->conflict = STM_NO_ENTRY;
}

static void end(struct stm_account *account, const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;

    if (!thread->is_in_transaction)
        return;
    uint64_t whole_ns = stm_elapsed(thread->start_ns, step->now_ns);
    uint64_t ran_ns = stm_elapsed(thread->pause_ns, whole_ns);
    account->totals.cpu_ns += ran_ns;
    if (step->event == STM_TRANSACTION_ABORT && thread->conflict != STM_NO_ENTRY) {
        struct stm_entry *entry = account->entries.list[thread->conflict];
        entry->lost_ns += ran_ns;
        if (account->semantics == STM_S1)
            entry->paused_ns += SLEEP_AFTER_ABORT_NS;
        thread->conflict = STM_NO_ENTRY;
    }
    thread->is_in_transaction = false;
}

static void contention(struct stm_account *account, const struct stm_step *step)
{
    struct stm_key key = stm_key_of(step);
    uint32_t number;

    stm_count_conflict(account, &key, step->now_ns, &number);
    if (!step->thread->is_in_transaction)
        return;
    step->thread->conflict = number;
    step->thread->is_conflict_local = true;
    step->thread->conflict_thread = step->record->other_thread;
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

static void wait_done(struct stm_account *account, const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;

    if (!thread->is_in_transaction || thread->pause_start_ns == STM_NEVER)
        return;
    uint64_t paused_ns = stm_elapsed(thread->pause_start_ns, step->now_ns);
    thread->pause_ns += paused_ns;
    thread->pause_start_ns = STM_NEVER;
    if (thread->conflict != STM_NO_ENTRY && thread->is_conflict_local) {
        account->entries.list[thread->conflict]->paused_ns += paused_ns;
        thread->conflict = STM_NO_ENTRY;
    }
}

void stm_add_early(struct stm_account *account, const struct stm_step *step)
{
    switch (step->event) {
    case STM_TRANSACTION_START:
        start(step);
        break;
    case STM_TRANSACTION_COMMIT:
    case STM_TRANSACTION_ABORT:
        end(account, step);
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
        if (account->semantics == STM_S1)
            wait_done(account, step);
        break;
    default:
        if (stm_is_wait(step->event) && account->semantics == STM_S1 &&
            step->thread->is_in_transaction)
            step->thread->pause_start_ns = step->now_ns;
        break;
    }
}
