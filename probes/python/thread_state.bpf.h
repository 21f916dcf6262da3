// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Finds the Python thread state of the thread that runs the program, in the interpreter's own list.

// Threads that are checked to find one's own state: so many in each run of the program.
#define SEARCHED_IN_A_RUN 32
#define MAX_SEARCHES 4
#define TSTATE_INTERPRETER 16
#define TSTATE_PREVIOUS 0 // struct _ts begins with prev, next, interp in CPython 3.6 to 3.15
#define FEW_INTERPRETERS 8

// The thread's id in the pid namespace of its process, which is how its Python knows it.
static __always_inline u32 own_tid(const struct python *python, u32 tid)
{
    return tid_in_namespace(python->namespace_device, python->namespace_inode, tid);
}

static __always_inline int is_of_thread(const struct python *python, u64 tstate, u32 tid)
{
    u64 descriptor = 0, id = 0;
    u32 kernel_id = 0;

    if (python->native_thread_id)
        return !read_u64(&id, tstate + python->native_thread_id) && id == tid;
    return !read_u64(&descriptor, tstate + python->thread_id) &&
           !read_user(&kernel_id, sizeof(kernel_id),
                      (void *)(descriptor + python->descriptor_tid)) &&
           kernel_id == tid;
}

static __always_inline int has_lock(const struct python *python, u64 interpreter, u64 cond)
{
    u64 gil = 0;

    if (!python->gil_pointer)
        return 1;
    return !read_u64(&gil, interpreter + python->gil_pointer) && gil + python->gil_cond == cond;
}

// Whether *tstate* points to an interpreter. Where the list of threads leads one way only, that has
// to do: whoever frees a thread state writes over this pointer.
static __always_inline int has_interpreter(const struct python *python, u64 tstate)
{
    u64 interpreter = python->interpreters - python->interpreter_next, own = 0;

    if (read_u64(&own, tstate + python->tstate_interpreter))
        return 0;
#pragma clang loop unroll(disable)
    for (int step = 0; step < FEW_INTERPRETERS; step++) {
        if (read_u64(&interpreter, interpreter + python->interpreter_next) || !interpreter)
            return 0;
        if (interpreter == own)
            return 1;
    }
    return 0;
}

// Whether *tstate* is in the list of an interpreter that uses the lock: memory that was given back
// looks the same.
static __always_inline int is_listed(const struct python *python, u64 tstate, u64 cond)
{
    u64 links[3] = {}; // previous, next, interpreter
    u64 pointer = 0;

    if (!python->has_tstate_previous)
        return has_interpreter(python, tstate);
    if (read_user(links, sizeof(links), (void *)(tstate + TSTATE_PREVIOUS)))
        return 0;
    pointer = links[0] ? links[0] + python->tstate_next : links[2] + python->threads_head;
    return !read_u64(&pointer, pointer) && pointer == tstate && has_lock(python, links[2], cond);
}

// Searches for the state of the thread *tid*, from where the last run has stopped, and notes where
// this one does: `search_from` and `search_interpreter` are 0 if nothing is left to search. A
// thread may have states in several interpreters that share a lock: the newest one with frames is
// where it runs.
static __always_inline void search_tstate(struct blame *blame, const struct python *python,
                                          u64 cond, u32 tid)
{
    u64 interpreter = python->interpreters - python->interpreter_next;
    u64 tstate = 0, frame = 0;

    if (blame->search_from && is_listed(python, blame->search_from, cond) &&
        !read_u64(&interpreter, blame->search_from + python->tstate_interpreter))
        tstate = blame->search_from;
    else if (blame->searches && !blame->search_from)
        interpreter = blame->search_interpreter;
    blame->search_from = 0;
    blame->search_interpreter = 0;
#pragma clang loop unroll(disable)
    for (int step = 0; step < SEARCHED_IN_A_RUN; step++) {
        if (!tstate) {
            if (read_u64(&interpreter, interpreter + python->interpreter_next) || !interpreter)
                return;
            if (has_lock(python, interpreter, cond) &&
                read_u64(&tstate, interpreter + python->threads_head))
                return;
            continue;
        }
        if (is_of_thread(python, tstate, tid)) {
            blame->tstate = tstate;
            if (!innermost_frame(&frame, python, tstate) && frame)
                return;
        }
        if (read_u64(&tstate, tstate + python->tstate_next))
            return;
    }
    blame->search_from = tstate;
    blame->search_interpreter = interpreter;
}

// The state of the thread that runs this, as far as it is known to be still right; or 0.
static __always_inline u64 known_tstate(const struct blame *blame, const struct python *python,
                                        u64 cond, u32 tid)
{
    if (blame->tstate && is_of_thread(python, blame->tstate, own_tid(python, tid)) &&
        is_listed(python, blame->tstate, cond))
        return blame->tstate;
    return 0;
}
