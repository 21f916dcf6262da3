// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The record of the thread that runs a program, and its thread state in the interpreter's list.

#define MOST_SEARCHED 512 // thread states, until the thread's own is found

static __always_inline void thread_left(u32 tgid)
{
}

#include "common/thread_record.bpf.h"

static __always_inline struct work *own_work(u32 tid)
{
    struct work *work = works.lookup(&tid);

    if (!work) {
        // Of all zeros, for which a program's own stack has no room.
        u32 nobody = 0;
        struct work *empty = works.lookup(&nobody);

        if (empty)
            works.update(&tid, empty);
        work = works.lookup(&tid);
    }
    return work;
}

// Forgets what was seen in an earlier window: what the thread has done since was not.
static __always_inline void enter_window(struct thread *thread, u64 window_ns)
{
    thread->window_ns = window_ns;
    thread->wanted_ns = 0;
    thread->asleep_ns = 0;
    thread->traps = 0;
    thread->stop_until_ns = 0;
}

// The record of the thread that runs this; 0 where there is no room.
static __always_inline struct thread *current_thread(const struct target *target, u32 tgid, u32 tid)
{
    struct thread *thread = known_thread(tgid, tid);

    if (!thread) {
        struct thread fresh = {.window_ns = target->from_ns, .tgid = tgid};

        bpf_get_current_comm(&fresh.name, sizeof(fresh.name));
        thread = threads.lookup_or_try_init(&tid, &fresh);
        if (!thread)
            lose(tgid, LOST_TABLE_FULL);
    }
    if (!thread)
        return 0;
    if (thread->window_ns != target->from_ns)
        enter_window(thread, target->from_ns);
    thread->traps++;
    return thread;
}

static __always_inline int is_own(const struct python *python, u64 tstate, u32 tid)
{
    u64 id = 0;

    return !read_u64(&id, tstate + python->native_thread_id) && id == tid;
}

// Finds the thread state of the thread, which stays the same until the thread ends.
static __always_inline void find_tstate(struct thread *thread, const struct python *python, u32 tid)
{
    u64 interpreter = python->interpreters - python->interpreter_next, tstate = 0;
    u32 own = tid_in_namespace(python->namespace_device, python->namespace_inode, tid);

    if (thread->tstate && is_own(python, thread->tstate, own))
        return;
    thread->tstate = 0;
#pragma clang loop unroll(disable)
    for (int step = 0; step < MOST_SEARCHED; step++) {
        if (!tstate) {
            if (read_u64(&interpreter, interpreter + python->interpreter_next) || !interpreter ||
                read_u64(&tstate, interpreter + python->threads_head))
                return;
            continue;
        }
        if (is_own(python, tstate, own)) {
            thread->tstate = tstate;
            return;
        }
        if (read_u64(&tstate, tstate + python->tstate_next))
            return;
    }
}
