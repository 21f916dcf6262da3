// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What a thread waits for, told from the address of the semaphore that it is about to sleep in.
//
// The parking lot has the semaphore in a record on the waiter's stack (struct wait_entry), the same
// in CPython 3.13 to 3.15:
//
//     park_arg, address, semaphore, node of the bucket's list, is_unparking
//
// A mutex is waited for with a park_arg that says when the thread began to want it, less a
// millisecond, and whether it has it when it is woken (struct mutex_entry). A bucket's own lock has
// its semaphore elsewhere, and nothing of this around it.

#define PARK_ARGUMENT 16 // before the semaphore
#define PARK_ADDRESS 8
#define PARK_NODE 32 // behind it
#define PARK_NODE_PREVIOUS 40
#define PARK_IS_UNPARKING 48
#define FAIR_AFTER_NS 1000000
#define PARK_IS_HANDED_OVER 8            // behind the time
#define LONGEST_WAIT_NS 3600000000000ULL // what was wanted before that is no time
#define HAS_PARKED 2                     // in a mutex: somebody sleeps
#define OBJECT_ALIGNMENT 16
#define STOP_REQUESTED 1  // in struct _stoptheworld_state: whether a stop is asked for,
#define STOP_REQUESTER 16 // who has asked for it,
#define STOP_EVENT 4      // and what it waits for until the others have stopped
#define MAX_METATYPES 3

static __always_inline u8 read_u8(u64 address)
{
    u8 value = 0;

    read_user(&value, sizeof(value), (void *)address);
    return value;
}

// Reads what is around the semaphore.
static __always_inline int read_park(struct park *park, u64 semaphore, u64 now)
{
    u64 previous = 0, linked = 0;
    u8 is_unparking = read_u8(semaphore + PARK_IS_UNPARKING);

    park->is_bucket = park->is_mutex = 0;
    park->wanted_ns = 0;
    if (read_u64(&park->argument, semaphore - PARK_ARGUMENT) ||
        read_u64(&park->address, semaphore - PARK_ADDRESS) ||
        read_u64(&previous, semaphore + PARK_NODE_PREVIOUS))
        return -1;
    if (previous)
        read_u64(&linked, previous);
    if (linked != semaphore + PARK_NODE && is_unparking != 1) {
        park->is_bucket = 1;
        return 0;
    }
    // Whoever takes an item out of a SimpleQueue parks with an argument too, and is no mutex.
    if (!park->argument || (is_unparking != 1 && !(read_u8(park->address) & HAS_PARKED)) ||
        read_u64(&park->wanted_ns, park->argument))
        return 0;
    park->wanted_ns -= FAIR_AFTER_NS;
    park->is_mutex = park->wanted_ns <= now && now - park->wanted_ns < LONGEST_WAIT_NS;
    return 0;
}

// Copies the name of the type of the object at *object*; returns whether it is an object.
static __always_inline int type_name(u8 *name, const struct target *target, u64 object)
{
    u64 type = 0, metatype = 0, text = 0;

    if (read_u64(&type, object + target->object_type) || !type)
        return 0;
    metatype = type;
#pragma clang loop unroll(disable)
    for (int step = 0; step < MAX_METATYPES && metatype != target->type_of_types; step++)
        if (read_u64(&metatype, metatype + target->object_type))
            return 0;
    return metatype == target->type_of_types && !read_u64(&text, type + target->type_name) &&
           read_user_str(name, LONGEST_TYPE, (void *)text) > 0;
}

static __always_inline int is_of_interpreter(const struct target *target,
                                             const struct python *python, u64 tstate, u64 address)
{
    u64 interpreter = 0;

    if (address >= target->runtime && address < target->runtime_end)
        return 1;
    return tstate && !read_u64(&interpreter, tstate + python->tstate_interpreter) &&
           address >= interpreter && address < interpreter + target->interpreter_size;
}

// Names a mutex of the interpreter that is known by its place.
static __always_inline void name_own_mutex(struct thread *thread, const struct target *target,
                                           const struct python *python, u64 address)
{
    u64 interpreter = 0, place;

    if (!thread->tstate || read_u64(&interpreter, thread->tstate + python->tstate_interpreter))
        return;
    place = address - interpreter;
    if (target->types_lock && place == target->types_lock)
        __builtin_memcpy(thread->type, "types", sizeof("types"));
    if (target->interned_lock && place == target->interned_lock)
        __builtin_memcpy(thread->type, "interned strings", sizeof("interned strings"));
    if (place >= target->weak_reference_locks && place < target->weak_reference_locks_end)
        __builtin_memcpy(thread->type, "weak references", sizeof("weak references"));
}

// What the mutex is that the thread wants.
static __always_inline void tell_mutex(struct thread *thread, const struct target *target,
                                       const struct python *python, u64 address)
{
    u32 kind = SLEEP_OTHER;

    thread->mutex = address;
    __builtin_memset(thread->type, 0, sizeof(thread->type));
    if (is_of_interpreter(target, python, thread->tstate, address)) {
        kind = SLEEP_INTERPRETER;
        name_own_mutex(thread, target, python, address);
    } else if (target->object_lock && address % OBJECT_ALIGNMENT == target->object_lock &&
               type_name(thread->type, target, address - target->object_lock)) {
        kind = SLEEP_OBJECT;
    } else if (type_name(thread->type, target, address - target->lock_content)) {
        kind = SLEEP_LOCK_OBJECT;
    }
    thread->kinds[WANTS_MUTEX] = kind;
}

// Where it is known for certain which mutex it is: the same as where the thread began to want it.
static __always_inline void tell_again(struct thread *thread, const struct target *target,
                                       const struct python *python, u64 address)
{
    if (thread->mutex == address)
        return;
    thread->held = 0;
    tell_mutex(thread, target, python, address);
}

// Of what parks and is no mutex.
static __always_inline u32 other_kind(const struct target *target, u64 tstate, u64 address)
{
    u64 requester = 0;

    if (tstate && address == tstate + target->thread_state)
        return SLEEP_STOPPED;
    if (tstate && !read_u64(&requester, address - STOP_EVENT + STOP_REQUESTER) &&
        requester == tstate)
        return SLEEP_STOPPING;
    return SLEEP_EVENT;
}

// Where the thread that sleeps in *semaphore* waits for the end of a stop: the address of its own
// state. Unless it *is_known* to, that must stand in a thread state of the same interpreter as
// *tstate*; 0: it does not, or cannot be read.
static __always_inline u64 stopped_state(const struct target *target, const struct python *python,
                                         u64 tstate, u64 semaphore, u32 is_known)
{
    u64 address = 0, own = 0, interpreter = 0;

    if (read_u64(&address, semaphore - PARK_ADDRESS))
        return 0;
    if (is_known)
        return address;
    if (read_u8(semaphore + PARK_IS_UNPARKING) != 1 || !tstate ||
        read_u64(&own, tstate + python->tstate_interpreter) ||
        read_u64(&interpreter, address - target->thread_state + python->tstate_interpreter))
        return 0;
    return own && interpreter == own ? address : 0;
}
