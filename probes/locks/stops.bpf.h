// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Stops of the world, seen in the thread that asks for one.
//
//     stopping = stands - asked: the last of its sleeps, of a millisecond at most, until all others
//                have stopped; none where they have done so at once
//     standing = the last thread woken - stands, or - the first one asleep where it did not sleep
//
// A stop that finds all others in blocking calls, from which none returns before its end, makes
// nobody sleep: that is not seen. There is nothing that tells one stop from the next but that the
// last thread to stop wakes the one that asks, who wakes others at the end. Where neither happens,
// as when a thread loses its CPU before it has gone to sleep, time tells them apart.

#define SAME_STOP_NS \
    10000000 // between two of these sleeps, and between a stop and who sleeps for it

static __always_inline u32 is_collecting(const struct thread *thread, const struct target *target,
                                         const struct python *python)
{
    u64 interpreter = 0;
    u32 collecting = 0;

    if (thread->tstate && !read_u64(&interpreter, thread->tstate + python->tstate_interpreter))
        read_user(&collecting, sizeof(collecting), (void *)(interpreter + target->gc_collecting));
    return collecting != 0;
}

// Only one thread of an interpreter stops the world at a time, but there may be several of these.
static __always_inline void count_stop(struct thread *thread, u64 is_new, u64 stopping_ns,
                                       u64 standing_ns)
{
    struct stop fresh = {};
    struct stop_key key = {
        .stack = thread->stop_stack,
        .tgid = thread->tgid,
        .is_collection = thread->stop_is_collection,
    };
    struct stop *stop = stops.lookup_or_try_init(&key, &fresh);

    if (!stop) {
        lose(thread->tgid, LOST_TABLE_FULL);
        return;
    }
    thread->stop_ns = (is_new ? 0 : thread->stop_ns) + stopping_ns + standing_ns;
    __sync_fetch_and_add(&stop->stops, is_new);
    __sync_fetch_and_add(&stop->stopping_ns, stopping_ns);
    __sync_fetch_and_add(&stop->standing_ns, standing_ns);
    if (thread->stop_ns > stop->longest_ns)
        stop->longest_ns = thread->stop_ns;
}

// The stop that it has asked for is over, or stands from now on.
static __always_inline void count_asked(struct thread *thread, u64 standing_ns)
{
    u64 asked_ns = thread->asked_ns, stands_ns = thread->stands_ns;

    thread->asked_ns = 0;
    count_stop(thread, 1, stands_ns > asked_ns ? stands_ns - asked_ns : 0, standing_ns);
}

// It is about to sleep until the others have stopped.
static __always_inline void ask_to_stop(struct thread *thread, const struct target *target,
                                        const struct python *python, u64 now)
{
    if (thread->asked_ns && (thread->has_all_stopped || now - thread->stands_ns > SAME_STOP_NS))
        count_asked(thread, 0); // nobody had to be woken at its end
    thread->has_all_stopped = 0;
    if (thread->asked_ns)
        return;
    thread->asked_ns = now;
    thread->stop_stack = thread->stacks[WANTS_OTHER];
    thread->stop_is_collection = is_collecting(thread, target, python);
}

// It wakes a thread that has slept since *stopped_ns*, because of a stop that it asked for.
static __always_inline void start_world(struct thread *thread, const struct target *target,
                                        const struct python *python, u64 stopped_ns, u64 stack,
                                        u64 now)
{
    u64 stands_ns = thread->stands_ns;

    if (thread->asked_ns && stopped_ns > stands_ns + SAME_STOP_NS)
        count_asked(thread, 0); // that one is over, and nobody had to be woken at its end
    if (thread->asked_ns) {
        count_asked(thread, now > stands_ns ? now - stands_ns : 0);
    } else if (stopped_ns > thread->started_ns) {
        thread->stop_stack = stack;
        thread->stop_is_collection = is_collecting(thread, target, python);
        count_stop(thread, 1, 0, now - stopped_ns);
    } else {
        count_stop(thread, 0, 0, now - thread->started_ns);
    }
    thread->started_ns = now;
}
