// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Who has a mutex when another thread begins to want it, and where that one stands.
//
// It is known where one of these says so:
//
//     a critical section, by which objects are locked, and types: it stands in a list of the thread
//     that is in it, unless that sleeps
//     an RLock of CPython 3.14 and later, which has the number of its thread behind the mutex, but
//         for the time from when it is handed over until the thread that got it runs: who has
//         handed it over has left a note of that
//
// Nothing says who has a Lock, or a list to which a single instruction appends.
//
// All of that changes while it is read. A holder is told if it is in the same section, or has the
// same RLock, after its stack was read as before, and in the same function; if by a section, at the
// same instruction as well. Who hands the lock over to a third thread is in its section a moment
// longer, and may still be told.

#define MOST_LOOKED_AT 96 // threads, and critical sections that they are in
#define SECTION_TAGS 3    // of a pointer to a critical section
#define SECTION_IS_INACTIVE 1
#define SECTION_HAS_TWO 2
#define SECTION_PREVIOUS 0 // in a critical section
#define SECTION_MUTEX 8
#define SECTION_OTHER_MUTEX 16

#define MOST_SEARCH_NS 50000 // of its time: the thread may have been preempted

// Since a mutex was handed over.
#define MOST_UNTIL_IT_RUNS_NS 10000000

// Whether the critical section at *tagged*, an address with its tags, has *mutex*.
static __always_inline int has_mutex(u64 tagged, u64 mutex)
{
    u64 one = 0, other = 0, section = tagged & ~(u64)SECTION_TAGS;

    if (tagged & SECTION_IS_INACTIVE || read_u64(&one, section + SECTION_MUTEX))
        return 0;
    if (tagged & SECTION_HAS_TWO)
        read_u64(&other, section + SECTION_OTHER_MUTEX);
    return one == mutex || other == mutex;
}

// Looks among the threads from *tstate* on for one that is in a critical section with *mutex*.
static __always_inline void find_section(struct holder *holder, u64 tstate,
                                         const struct target *target, const struct python *python,
                                         u64 mutex)
{
    u64 tagged = 0, innermost;

    read_u64(&tagged, tstate + target->critical_section);
    innermost = tagged;
#pragma clang loop unroll(disable)
    for (int step = 0; step < MOST_LOOKED_AT; step++) {
        u64 section = tagged & ~(u64)SECTION_TAGS;

        if (section && has_mutex(tagged, mutex)) {
            holder->section = tagged;
            holder->innermost = innermost;
            holder->tstate = tstate;
            return;
        }
        if (!section && (read_u64(&tstate, tstate + python->tstate_next) || !tstate))
            return;
        // Who has left a section meanwhile may have put anything there.
        if (read_u64(&tagged,
                     section ? section + SECTION_PREVIOUS : tstate + target->critical_section))
            tagged = 0;
        innermost = section ? innermost : tagged;
    }
}

// Looks among the threads from *tstate* on for the one with the number that an RLock has.
static __always_inline void find_number(struct holder *holder, u64 tstate,
                                        const struct python *python)
{
    u64 number = 0;

#pragma clang loop unroll(disable)
    for (int step = 0; step < MOST_LOOKED_AT && tstate; step++) {
        if (read_u64(&number, tstate + python->thread_id))
            return;
        if (number == holder->number) {
            holder->tstate = tstate;
            return;
        }
        if (read_u64(&tstate, tstate + python->tstate_next))
            return;
    }
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

// Keeps to whom a mutex is handed over, if it is: to *sleeper*, which sleeps in *semaphore* for
// that of an RLock.
static __always_inline void note_hand_over(u32 tgid, u64 semaphore, const struct wake *sleeper,
                                           u64 now)
{
    struct hand_over hand_over = {.at_ns = now, .number = sleeper->number, .tid = sleeper->tid};
    struct mutex_key key = {.tgid = tgid};
    u64 argument = 0;
    u32 is_handed_over = 0;

    if (!read_u64(&argument, semaphore - PARK_ARGUMENT) &&
        !read_u64(&key.address, semaphore - PARK_ADDRESS) &&
        !read_user(&is_handed_over, sizeof(is_handed_over),
                   (void *)argument + PARK_IS_HANDED_OVER) &&
        is_handed_over)
        hand_overs.update(&key, &hand_over);
}

// Takes for the holder who was given the mutex a moment ago, if anybody was.
static __always_inline void take_given(struct holder *holder, const struct thread *thread)
{
    struct mutex_key key = {.address = thread->mutex, .tgid = thread->tgid};
    struct hand_over *hand_over = hand_overs.lookup(&key);

    if (!hand_over || now_ns() - hand_over->at_ns > MOST_UNTIL_IT_RUNS_NS)
        return;
    holder->number = hand_over->number;
    holder->tid = hand_over->tid;
    holder->given_ns = hand_over->at_ns;
}

// Whether who was given the mutex stands where it has waited for it, with stack *id*: else it has
// run, and may have released it.
static __always_inline int has_not_run(const struct holder *holder, const struct thread *thread,
                                       u64 id)
{
    u32 tid = holder->tid;
    struct thread *given = threads.lookup(&tid);

    return given && given->mutex == thread->mutex && given->wanted_ns <= holder->given_ns &&
           given->stacks[WANTS_MUTEX] == id;
}

static __always_inline void find_holder(struct holder *holder, const struct thread *thread,
                                        const struct target *target, const struct python *python,
                                        int in_sections)
{
    u64 interpreter = 0, first = 0;

    __builtin_memset(holder, 0, sizeof(*holder));
    if (!thread->mutex || !thread->tstate ||
        read_u64(&interpreter, thread->tstate + python->tstate_interpreter) ||
        read_u64(&first, interpreter + python->threads_head) || !first)
        return;
    if (is_rlock(thread, target)) {
        if (read_u64(&holder->owner, thread->mutex + target->rlock_owner))
            return;
        holder->number = holder->owner;
        if (!holder->number)
            take_given(holder, thread);
        if (holder->number)
            find_number(holder, first, python);
    } else if (in_sections && target->critical_section &&
               thread->kinds[WANTS_MUTEX] != SLEEP_LOCK_OBJECT) {
        find_section(holder, first, target, python, thread->mutex);
    }
}

static __always_inline int is_in_section(const struct holder *holder, const struct target *target)
{
    u64 innermost = 0;

    return !read_u64(&innermost, holder->tstate + target->critical_section) &&
           innermost == holder->innermost;
}

static __always_inline int is_at(u64 frame, const struct stack *stack, const struct python *python)
{
    u64 instruction = 0;

    return !read_u64(&instruction, frame + python->frame_begin + python->frame_instruction) &&
           (u32)(instruction - stack->codes[0]) == stack->instructions[0];
}

// Whether it has the mutex still, and stands where *stack* says.
static __always_inline int still_holds(const struct holder *holder, const struct stack *stack,
                                       u64 frame, const struct thread *thread,
                                       const struct target *target, const struct python *python)
{
    u64 frame_now = 0, code = 0, number = 0;

    if (holder->number) {
        if (read_u64(&number, thread->mutex + target->rlock_owner) ||
            (number != holder->number && number != holder->owner))
            return 0;
    } else if (!is_in_section(holder, target) || !is_at(frame, stack, python) ||
               !is_in_section(holder, target) || !is_at(frame, stack, python) ||
               !is_in_section(holder, target) || !has_mutex(holder->section, thread->mutex)) {
        // Once each would be true of one that goes in and out, if this is interrupted between.
        return 0;
    }
    if (read_u64(&code, frame + python->frame_begin + python->frame_code) ||
        read_u64(&frame_now, holder->tstate + python->tstate_frame))
        return 0;
    code &= ~(u64)REFERENCE_FLAGS;
    return frame_now == frame && code == stack->codes[0];
}

// Where the thread stands that has the mutex which *thread* wants; 0: it is not known.
static __always_inline u64 held_by(struct work *work, const struct thread *thread,
                                   const struct target *target, const struct python *python,
                                   struct totals *total, u32 tid, int in_sections)
{
    struct holder *holder = &work->holder;
    u64 frame = 0, id = 0;
    u32 own = tid_in_namespace(python->namespace_device, python->namespace_inode, tid);

    find_holder(holder, thread, target, python, in_sections);
    if (!holder->tstate || is_own(python, holder->tstate, own) ||
        read_u64(&frame, holder->tstate + python->tstate_frame))
        return 0;
    id = read_stack(work, thread->tgid, python, holder->tstate);
    // Of a thread that was in code of the interpreter's own the first frame is another one.
    if (!id || !still_holds(holder, &work->stack, frame, thread, target, python) ||
        (holder->given_ns && !has_not_run(holder, thread, id)))
        return 0;
    return keep_stack(work, thread->tgid, id, &total->held_stacks) ? id : 0;
}
