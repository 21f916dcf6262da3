// The original's rules from 2015-03-10 on: S2.
//
// A thread runs, is paused, is detached, or has stopped. What time a state lasted goes into a
// bucket of the transaction when the state ends, and from there into the totals when the
// transaction does; detached time, and all time between transactions, is dropped.
//
// A START forgets first and adds then: where the thread was still in a transaction, what its last
// state lasted goes to the new one. An end forgets nothing.

#include "account.h"

static void enter(const struct stm_step *step, enum stm_thread_state state)
{
    struct stm_thread *thread = step->thread;
    uint64_t lasted_ns = stm_elapsed(thread->since_ns, step->now_ns);

    if (thread->state == STM_RUNNING)
        thread->run_ns += lasted_ns;
    else if (thread->state == STM_PAUSED)
        thread->pause_ns += lasted_ns;
    thread->state = (uint8_t)state;
    thread->since_ns = step->now_ns;
}

static void start(const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;

    thread->run_ns = 0;
    thread->pause_ns = 0;
    thread->is_aborting = false;
    thread->waits_for_segment = false;
    // The attempt to become inevitable goes together with the wait that it has led to.
    thread->kept_event = STM_EVENTS;
    thread->pause_start_ns = STM_NEVER;
    thread->minor_gc_ns = STM_NEVER;
    enter(step, STM_RUNNING);
    thread->is_in_transaction = true;
}

static void end(struct stm_account *account, const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;
    struct stm_totals *totals = &account->totals;

    enter(step, STM_OUTSIDE);
    if (step->event == STM_TRANSACTION_COMMIT) {
        totals->committed_ns += thread->run_ns;
        totals->commits++;
    } else {
        totals->aborted_ns += thread->run_ns;
        totals->aborts++;
    }
    totals->paused_ns += thread->pause_ns;
    thread->is_in_transaction = false;
}

static void wait(const struct stm_account *account, const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;

    enter(step, STM_PAUSED);
    if (step->event == STM_WAIT_FREE_SEGMENT && account->table->is_read_by_last_tool)
        thread->waits_for_segment = true;
    if (step->event == STM_WAIT_OTHER_INEVITABLE && thread->kept_event != STM_EVENTS)
        thread->pause_start_ns = step->now_ns;
}

static void wait_done(struct stm_account *account, const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;

    enter(step, thread->waits_for_segment ? STM_OUTSIDE : STM_RUNNING);
    if (thread->pause_start_ns == STM_NEVER)
        return;
    struct stm_entry *entry = stm_count_kept(account, thread);
    if (entry)
        entry->paused_ns += stm_elapsed(thread->pause_start_ns, step->now_ns);
    thread->pause_start_ns = STM_NEVER;
}

static void contention(struct stm_account *account, const struct stm_step *step)
{
    struct stm_thread *thread = step->thread;
    struct stm_key key = stm_key_of(step);
    uint32_t number;

    if (thread->is_aborting)
        return;
    enter(step, STM_RUNNING);
    thread->is_aborting = true;
    struct stm_entry *entry = stm_count_conflict(account, &key, step->now_ns, &number);
    if (entry) {
        entry->lost_ns += thread->run_ns;
        entry->paused_ns += thread->pause_ns;
    }
}

void stm_add_late(struct stm_account *account, const struct stm_step *step)
{
    switch (step->event) {
    case STM_TRANSACTION_START:
        start(step);
        break;
    case STM_TRANSACTION_COMMIT:
    case STM_TRANSACTION_ABORT:
        end(account, step);
        break;
    case STM_TRANSACTION_DETACH:
        enter(step, STM_DETACHED);
        break;
    case STM_TRANSACTION_REATTACH:
    case STM_BECOME_INEVITABLE:
        enter(step, STM_RUNNING);
        stm_keep(step);
        break;
    case STM_CONTENTION_WRITE_WRITE:
    case STM_CONTENTION_WRITE_READ:
    case STM_CONTENTION_INEVITABLE:
        contention(account, step);
        break;
    case STM_WAIT_DONE:
        wait_done(account, step);
        break;
    case STM_GC_MINOR_START:
        if (step->thread->state == STM_DETACHED)
            enter(step, STM_RUNNING);
        stm_add_gc(account, step);
        break;
    default:
        if (stm_is_wait(step->event))
            wait(account, step);
        else
            stm_add_gc(account, step);
        break;
    }
}
