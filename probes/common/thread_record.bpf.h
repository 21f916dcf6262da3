// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Whose a record in the table `threads` is, whatever else it holds. To be included after both.

// The record of a thread, or 0 where it has none. What is left of another process' goes.
static __always_inline struct thread *known_thread(u32 tgid, u32 tid)
{
    struct thread *thread = threads.lookup(&tid);

    if (thread && thread->tgid != tgid) {
        // The number was another process' before user space had counted that thread's end.
        lose(thread->tgid, LOST_THREAD_REUSED);
        thread_left(thread->tgid);
        threads.delete(&tid);
        thread = 0;
    }
    if (thread && thread->exited_ns)
        thread->exited_ns = 0; // the number of a dead thread of the same process: they are one
    return thread;
}
