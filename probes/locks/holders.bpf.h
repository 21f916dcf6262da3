// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Who has a mutex when another thread begins to want it, and where that one stands.
//
// It is known of two kinds:
//
//     a lock of an object that is taken by a critical section, which stands in a list of the thread
//     that is in it; who sleeps, is in none
//     an RLock of CPython 3.14 and later, which has the number of its thread behind the mutex
//
// Nothing says who has a Lock, or a list to which a single instruction appends.

#define MOST_LOOKED_AT 256 // threads, and critical sections that they are in
#define SECTION_TAGS 3     // of a pointer to a critical section
#define SECTION_IS_INACTIVE 1
#define SECTION_HAS_TWO 2
#define SECTION_PREVIOUS 0 // in a critical section
#define SECTION_MUTEX 8
#define SECTION_OTHER_MUTEX 16

static __always_inline int is_mutex_of(u64 section, u64 tags, u64 mutex)
{
    u64 one = 0, other = 0;

    if (tags & SECTION_IS_INACTIVE || read_u64(&one, section + SECTION_MUTEX))
        return 0;
    if (tags & SECTION_HAS_TWO)
        read_u64(&other, section + SECTION_OTHER_MUTEX);
    return one == mutex || other == mutex;
}

// Of the threads from *tstate* on, the one that is in a critical section that has *mutex*; 0: none.
static __always_inline u64 thread_with_section(u64 tstate, const struct target *target,
                                               const struct python *python, u64 mutex)
{
    u64 tagged = 0;

    if (!tstate || read_u64(&tagged, tstate + target->critical_section))
        return 0;
#pragma clang loop unroll(disable)
    for (int step = 0; step < MOST_LOOKED_AT; step++) {
        u64 section = tagged & ~(u64)SECTION_TAGS;

        if (section) {
            if (is_mutex_of(section, tagged, mutex))
                return tstate;
            if (read_u64(&tagged, section + SECTION_PREVIOUS))
                return 0;
            continue;
        }
        if (read_u64(&tstate, tstate + python->tstate_next) || !tstate ||
            read_u64(&tagged, tstate + target->critical_section))
            return 0;
    }
    return 0;
}

// Of the threads from *tstate* on, the one that is called *number*; 0: none.
static __always_inline u64 thread_numbered(u64 tstate, const struct python *python, u64 number)
{
    u64 found = 0;

#pragma clang loop unroll(disable)
    for (int step = 0; step < MOST_LOOKED_AT && tstate; step++) {
        if (read_u64(&found, tstate + python->thread_id))
            return 0;
        if (found == number)
            return tstate;
        if (read_u64(&tstate, tstate + python->tstate_next))
            return 0;
    }
    return 0;
}

// Whether the thread wants the mutex of an RLock that names its owner.
static __always_inline int is_rlock(const struct thread *thread, const struct target *target)
{
    static const char name[] = "_thread.RLock";

    if (!target->rlock_owner || thread->kinds[WANTS_MUTEX] != SLEEP_LOCK_OBJECT)
        return 0;
#pragma clang loop unroll(full)
    for (u32 at = 0; at < sizeof(name); at++)
        if (thread->type[at] != name[at])
            return 0;
    return 1;
}

// Where the thread stands that has the mutex which *thread* wants; 0: it is not known. It runs
// meanwhile: what it has left by then is not told.
static __always_inline u64 held_by(const struct thread *thread, const struct target *target,
                                   const struct python *python, u32 tid)
{
    u64 interpreter = 0, first = 0, holder = 0, proof = 0, said = 0, says = 0, stack = 0;
    u64 frame = 0, frame_then = 0;
    struct work *work = own_work(tid);

    if (!work || !thread->tstate ||
        read_u64(&interpreter, thread->tstate + python->tstate_interpreter) ||
        read_u64(&first, interpreter + python->threads_head))
        return 0;
    if (is_rlock(thread, target)) {
        proof = thread->mutex + target->rlock_owner;
        if (read_u64(&said, proof) || !said)
            return 0;
        holder = thread_numbered(first, python, said);
    } else if (target->critical_section && thread->kinds[WANTS_MUTEX] != SLEEP_LOCK_OBJECT) {
        holder = thread_with_section(first, target, python, thread->mutex);
        proof = holder + target->critical_section;
        read_u64(&said, proof);
    }
    if (!holder || holder == thread->tstate || read_u64(&frame_then, holder + python->tstate_frame))
        return 0;
    stack = stack_of(work, thread->tgid, python, holder);
    if (read_u64(&frame, holder + python->tstate_frame) || read_u64(&says, proof))
        return 0;
    return frame == frame_then && says == said ? stack : 0;
}
