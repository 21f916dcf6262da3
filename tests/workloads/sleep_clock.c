// The truth about sleeps of CPython's threads, read at the very semaphores that they sleep in.
//
// LD_PRELOAD puts these functions before the C library's. Each thread's time inside of them is
// added up; `sleep_clock` says what a thread has slept since `sleep_clock_begin`, and for how long
// it has woken others: who releases what others wait for does, within the statement that it times.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 1024

static struct {
    long tid;
    uint64_t ns;
    uint64_t sleeps;
    uint64_t began_ns; // 0: awake
    uint64_t woke_ns;
} sums[MOST_THREADS];
static int threads;
static uint64_t counts_from_ns;
static int (*real_post)(sem_t *);
static int (*real_wait)(sem_t *);
static int (*real_timed)(sem_t *, const struct timespec *);
static int (*real_clock)(sem_t *, clockid_t, const struct timespec *);
static __thread int own = -1;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

__attribute__((constructor)) static void begin(void)
{
    real_post = dlsym(RTLD_NEXT, "sem_post");
    real_wait = dlsym(RTLD_NEXT, "sem_wait");
    real_timed = dlsym(RTLD_NEXT, "sem_timedwait");
    real_clock = dlsym(RTLD_NEXT, "sem_clockwait");
}

static void find_own(void)
{
    if (own < 0) {
        own = __atomic_fetch_add(&threads, 1, __ATOMIC_SEQ_CST) % MOST_THREADS;
        sums[own].tid = syscall(SYS_gettid);
    }
}

static void fall_asleep(void)
{
    find_own();
    sums[own].began_ns = now_ns();
}

static int wake(int result)
{
    uint64_t now = now_ns();

    // A sleep that had begun before is not one of those that count.
    if (sums[own].began_ns >= counts_from_ns) {
        sums[own].ns += now - sums[own].began_ns;
        sums[own].sleeps++;
    }
    sums[own].began_ns = 0;
    return result;
}

int sem_wait(sem_t *semaphore)
{
    fall_asleep();
    return wake(real_wait(semaphore));
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    fall_asleep();
    return wake(real_timed(semaphore, until));
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    fall_asleep();
    return wake(real_clock(semaphore, clock, until));
}

int sem_post(sem_t *semaphore)
{
    find_own();
    uint64_t before = now_ns();
    int result = real_post(semaphore);

    sums[own].woke_ns += now_ns() - before;
    return result;
}

// Forgets what has been counted.
void sleep_clock_begin(void)
{
    counts_from_ns = now_ns();
    for (int at = 0; at < MOST_THREADS; at++)
        sums[at].ns = sums[at].sleeps = sums[at].woke_ns = 0;
}

// Tells what the thread *tid* has slept, and for how long it has woken others; returns 0 where it
// has done neither.
int sleep_clock(long tid, uint64_t *ns, uint64_t *sleeps, uint64_t *woke_ns)
{
    for (int at = 0; at < MOST_THREADS; at++) {
        if (sums[at].tid != tid)
            continue;
        *ns = sums[at].ns;
        *sleeps = sums[at].sleeps;
        *woke_ns = sums[at].woke_ns;
        return 1;
    }
    return 0;
}
