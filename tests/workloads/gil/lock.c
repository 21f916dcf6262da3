// A lock of the GIL's shape, in the three ways in which CPython's evaluation loop yields it:
//
//   INLINED_YIELD    3.8, and optimized builds up to 3.11: the loop drops and takes it itself
//   SEPARATE_YIELD   3.9 to 3.12: in a function of its own, which nothing exports
//   EXPORTED_YIELD   since 3.13: in an exported function, through wrappers
//
// The other macros make shapes whose yield cannot be told with certainty; the test names them.
// COPIED_TAKE gives the loop's yield and the C API a copy of take_gil each, as compilers do.
// With a queue beside it that waits and signals as well and has nothing to do with the lock.

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default"), noinline))
#define SEPARATE static __attribute__((noinline))

struct lock {
    unsigned long interval;
    void *last_holder;
    int locked;
    unsigned long switch_number;
    pthread_cond_t cond;
    pthread_mutex_t mutex;
    pthread_cond_t switch_cond;
    pthread_mutex_t switch_mutex;
};

static struct lock gil;
static volatile int drop_requested;
volatile long work;

EXPORTED __attribute__((noreturn, cold)) void fatal_error(const char *function, const char *text)
{
    if (write(2, function, 1) < 0 || write(2, text, 1) < 0)
        _exit(2);
    abort();
}

#define CHECKED(call, text) \
    do { \
        if (call) \
            fatal_error(__func__, text); \
    } while (0)

SEPARATE void drop_gil(void *thread)
{
    if (!gil.locked)
        fatal_error(__func__, "drop_gil: GIL is not locked");
    CHECKED(pthread_mutex_lock(&gil.mutex), "PyMUTEX_LOCK(gil->mutex) failed");
    gil.last_holder = thread;
    gil.locked = 0;
    CHECKED(pthread_cond_signal(&gil.cond), "PyCOND_SIGNAL(gil->cond) failed");
    CHECKED(pthread_mutex_unlock(&gil.mutex), "PyMUTEX_UNLOCK(gil->mutex) failed");
    if (drop_requested && thread) {
        CHECKED(pthread_mutex_lock(&gil.switch_mutex), "PyMUTEX_LOCK(gil->switch_mutex) failed");
        if (gil.last_holder == thread) {
            drop_requested = 0;
            CHECKED(pthread_cond_wait(&gil.switch_cond, &gil.switch_mutex),
                    "PyCOND_WAIT(gil->switch_cond) failed");
        }
        CHECKED(pthread_mutex_unlock(&gil.switch_mutex),
                "PyMUTEX_UNLOCK(gil->switch_mutex) failed");
    }
}

static inline __attribute__((always_inline)) void take(void *thread)
{
    int saved_error = errno;
    CHECKED(pthread_mutex_lock(&gil.mutex), "PyMUTEX_LOCK(gil->mutex) failed");
    while (gil.locked) {
        unsigned long seen = gil.switch_number;
        struct timespec deadline = {0, (long)gil.interval};
        int result = pthread_cond_timedwait(&gil.cond, &gil.mutex, &deadline);
        if (result == ETIMEDOUT) {
            if (gil.locked && gil.switch_number == seen)
                drop_requested = 1;
        } else if (result) {
            fatal_error(__func__, "PyCOND_TIMED_WAIT(gil->cond) failed");
        }
    }
    CHECKED(pthread_mutex_lock(&gil.switch_mutex), "PyMUTEX_LOCK(gil->switch_mutex) failed");
    gil.locked = 1;
    if (gil.last_holder != thread) {
        gil.last_holder = thread;
        ++gil.switch_number;
    }
    CHECKED(pthread_cond_signal(&gil.switch_cond), "PyCOND_SIGNAL(gil->switch_cond) failed");
    CHECKED(pthread_mutex_unlock(&gil.switch_mutex), "PyMUTEX_UNLOCK(gil->switch_mutex) failed");
    CHECKED(pthread_mutex_unlock(&gil.mutex), "PyMUTEX_UNLOCK(gil->mutex) failed");
    errno = saved_error;
}

SEPARATE void take_gil(void *thread)
{
    take(thread);
}
#ifdef COPIED_TAKE
static void take_gil_copy(void *thread) __asm__("take_gil.constprop.0");
SEPARATE void take_gil_copy(void *thread)
{
    ++work;
    take(thread);
}
#else
#define take_gil_copy take_gil
#endif

#ifdef EXPORTED_YIELD
static long attached;
SEPARATE void release_lock(void *thread)
{
    ++work;
    drop_gil(thread);
    ++work;
}
SEPARATE void acquire_lock(void *thread)
{
    ++work;
    take_gil(thread);
    ++work;
}
SEPARATE void detach(void *thread)
{
    --attached;
    release_lock(thread);
}
#if defined YIELD_THROUGH_FOUR || defined YIELD_THROUGH_JUMP
SEPARATE void acquire_more(void *thread)
{
    work += 2;
    acquire_lock(thread);
#ifdef YIELD_THROUGH_FOUR
    ++work;
#endif
}
#else
#define acquire_more acquire_lock
#endif
SEPARATE void attach(void *thread)
{
    acquire_more(thread);
    ++attached;
}
SEPARATE __attribute__((unused)) void attach_again(void *thread)
{
    attach(thread);
    work += 3;
}

#ifdef YIELD_BY_TAIL_CALL
EXPORTED void _Py_HandlePending(void *thread)
{
    detach(thread);
    attach(thread);
}
#define HANDLE_PENDING(thread) (_Py_HandlePending(thread), 0)
#else
EXPORTED int _Py_HandlePending(void *thread)
{
    if (work & 1) {
#ifndef YIELD_WITHOUT_DROP
        detach(thread);
#endif
#ifdef YIELD_BY_TWO_WAYS
        if (work & 32)
            attach_again(thread);
        else
#endif
            attach(thread);
    }
    return work & 2 ? -1 : 0;
}
#define HANDLE_PENDING _Py_HandlePending
#endif
#define TAKE attach
#define DROP detach
#else
#ifdef SEPARATE_YIELD
SEPARATE
#else
static inline __attribute__((always_inline))
#endif
int eval_frame_handle_pending(void *thread)
{
    if (work & 1) {
        if (work & 4)
            fatal_error(__func__, "tstate mix-up");
        drop_gil(thread);
        take_gil(thread);
    }
    return work & 2 ? -1 : 0;
}
#define HANDLE_PENDING eval_frame_handle_pending
#define TAKE take_gil_copy
#define DROP drop_gil
#endif

EXPORTED void *PyEval_SaveThread(void)
{
    void *thread = gil.last_holder;
    DROP(thread);
    return thread;
}

EXPORTED void PyEval_RestoreThread(void *thread)
{
    TAKE(thread);
    work ^= 8;
}

EXPORTED void PyEval_AcquireThread(void *thread)
{
    TAKE(thread);
    work ^= 16;
}

// A blocking call that the evaluation loop makes by itself: no yield.
SEPARATE long blocking_call(int fd)
{
    char byte;
    void *thread = PyEval_SaveThread();
    long result = read(fd, &byte, 1);
    PyEval_RestoreThread(thread);
    return result;
}

EXPORTED long _PyEval_EvalFrameDefault(void *thread, const unsigned char *code)
{
    long sum = 0;
    for (; *code; ++code) {
        switch (*code) {
        case 1:
            sum += blocking_call(3);
            break;
        case 2:
            sum += *code;
#ifdef SECOND_YIELD
            DROP(thread);
            TAKE(thread);
#endif
            break;
        default:
            if (HANDLE_PENDING(thread))
                return -1;
        }
    }
    return sum;
}

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    int length;
};

EXPORTED void queue_put(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    ++queue->length;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
}

EXPORTED int queue_get(struct queue *queue, const struct timespec *deadline)
{
    int result = 0;
    pthread_mutex_lock(&queue->mutex);
    while (!queue->length && !result)
        result = pthread_cond_timedwait(&queue->filled, &queue->mutex, deadline);
    --queue->length;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
    return result;
}

EXPORTED void queue_wait(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    while (!queue->length)
        pthread_cond_wait(&queue->filled, &queue->mutex);
    pthread_mutex_unlock(&queue->mutex);
}

#ifdef WITH_MAIN
int main(void)
{
    return (int)_PyEval_EvalFrameDefault(&gil, (const unsigned char *)"\3\2\1");
}
#endif
