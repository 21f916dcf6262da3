/* A witness inside the process: notes when each GIL is taken and dropped, by whom, and who waits.
 *
 * To be preloaded (LD_PRELOAD). It stands between the interpreter and the condition variables of
 * libc: take_gil signals gil->switch_cond when it has taken the lock, drop_gil signals gil->cond
 * when it has dropped it, and both under the lock's mutex. So the notes tell for every hold, of
 * whatever code, when it began and ended, without symbols, probes or the program's help. Which
 * variables are a GIL's is for the reader to say: nothing is left out here.
 *
 * A wait is noted as of when its thread had the mutex. What a probe does between there and libc
 * happens while the thread needs the lock and has not got it, so it is a part of the wait.
 *
 * The notes go to a file of shared memory, $HOLD_WITNESS, which the reader may look at meanwhile
 * and has whole even if the process is killed. An exec goes on in the same file, a fork's child
 * writes into it too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_NOTES (4u << 20) /* 128 MiB, of which only what is written takes memory */

enum kind {
    SIGNALLED = 1,
    WAITS = 2,
    WOKEN = 3,
    BEGAN = 4, /* a program: whatever its process held or waited for is void */
};

struct note {
    uint64_t at_ns; /* CLOCK_MONOTONIC */
    uint64_t cond;
    uint32_t pid, tid;
    uint32_t kind;
    uint32_t is_written; /* the number is given out before the note is complete */
};

struct notes {
    _Atomic uint64_t count; /* may exceed MAX_NOTES: the rest is lost */
    uint64_t padding[3];
    struct note note[MAX_NOTES];
};

static struct notes *notes;
static pid_t own_pid;

/* The mutex that this thread has locked last, until it waits, and when it had it. */
static __thread pthread_mutex_t *locked_mutex;
static __thread uint64_t locked_ns;

static int (*real_lock)(pthread_mutex_t *);
static int (*real_signal)(pthread_cond_t *);
static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t,
                             const struct timespec *);

static void *next(const char *name)
{
    /* By name alone dlsym may find the version that nobody is linked to any more. */
    void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return found != NULL ? found : dlsym(RTLD_NEXT, name);
}

static void find_real(void)
{
    *(void **)&real_lock = next("pthread_mutex_lock");
    *(void **)&real_wait = next("pthread_cond_wait");
    *(void **)&real_timedwait = next("pthread_cond_timedwait");
    *(void **)&real_clockwait = next("pthread_cond_clockwait");
    *(void **)&real_signal = next("pthread_cond_signal");
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void take_note_of(uint64_t at_ns, const void *cond, enum kind kind)
{
    if (notes == NULL)
        return;
    uint64_t number = atomic_fetch_add(&notes->count, 1);
    if (number >= MAX_NOTES)
        return;
    struct note *note = &notes->note[number];
    note->at_ns = at_ns;
    note->cond = (uint64_t)(uintptr_t)cond;
    note->pid = (uint32_t)own_pid;
    note->tid = (uint32_t)syscall(SYS_gettid);
    note->kind = kind;
    atomic_thread_fence(memory_order_release);
    note->is_written = 1;
}

static void take_note(const void *cond, enum kind kind)
{
    take_note_of(now_ns(), cond, kind);
}

static void note_wait(const pthread_cond_t *cond, const pthread_mutex_t *mutex)
{
    take_note_of(mutex == locked_mutex ? locked_ns : now_ns(), cond, WAITS);
    locked_mutex = NULL;
}

static void be_a_child(void)
{
    own_pid = getpid();
    take_note(NULL, BEGAN);
}

__attribute__((constructor)) static void prepare(void)
{
    const char *path = getenv("HOLD_WITNESS");
    int fd = path != NULL ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    own_pid = getpid();
    find_real();
    if (fd < 0)
        return;
    if (ftruncate(fd, sizeof(*notes)) == 0) {
        void *mapped = mmap(NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (mapped != MAP_FAILED) {
            notes = mapped;
            pthread_atfork(NULL, NULL, be_a_child);
            take_note(NULL, BEGAN);
        }
    }
    close(fd);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (real_lock == NULL)
        find_real();
    int result = real_lock(mutex);
    locked_ns = now_ns();
    locked_mutex = mutex;
    return result;
}

int pthread_cond_signal(pthread_cond_t *cond)
{
    take_note(cond, SIGNALLED);
    if (real_signal == NULL)
        find_real();
    return real_signal(cond);
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    note_wait(cond, mutex);
    if (real_wait == NULL)
        find_real();
    int result = real_wait(cond, mutex);
    take_note(cond, WOKEN);
    return result;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                           const struct timespec *until)
{
    note_wait(cond, mutex);
    if (real_timedwait == NULL)
        find_real();
    int result = real_timedwait(cond, mutex, until);
    take_note(cond, WOKEN);
    return result;
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *until)
{
    note_wait(cond, mutex);
    if (real_clockwait == NULL)
        find_real();
    int result = real_clockwait(cond, mutex, clock, until);
    take_note(cond, WOKEN);
    return result;
}
