// What semaphore_rounds.py does in C: it knows the lock of CPython 2.7 as the semaphore that
// somebody waits for, holds the GIL until the kernel says so, and reads clocks on both sides of
// each instant.
//
// Loaded before the interpreter (LD_PRELOAD), to see semaphores being made.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_SEMAPHORES 4096

static sem_t *semaphores[MOST_SEMAPHORES];
static int made;
static volatile int flags[16];

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int sem_init(sem_t *semaphore, int shared, unsigned int value)
{
    int (*real)(sem_t *, int, unsigned int) = dlsym(RTLD_NEXT, "sem_init");
    int at = __sync_fetch_and_add(&made, 1);

    if (at < MOST_SEMAPHORES)
        semaphores[at] = semaphore;
    return real(semaphore, shared, value);
}

// The lower half of a semaphore of glibc's is its value, the upper one counts who waits for it.
static int waiters(const sem_t *semaphore)
{
    return (int)(*(volatile uint64_t *)semaphore >> 32);
}

static sem_t *waited_for(void)
{
    int end = made < MOST_SEMAPHORES ? made : MOST_SEMAPHORES;

    for (int at = 0; at < end; at++)
        if (semaphores[at] && waiters(semaphores[at]) == 1)
            return semaphores[at];
    return 0;
}

int64_t rounds_now_ns(void)
{
    return now_ns();
}

int64_t rounds_tid(void)
{
    return syscall(SYS_gettid);
}

// Called with the GIL. Wakes the thread that reads from `wake`, which will want the GIL, and holds
// it until `ns` after that thread has begun to wait, or until a byte comes from `until` if that is
// not negative. Meanwhile the thread is woken for nothing `vain` times, each time out of its sleep.
//
// `out`: before it was woken; when it waited for certain; before the first wake-up for nothing;
// after the second one had found it asleep, so that the first had been in vain; before the release.
void rounds_hold(int wake, int until, int64_t ns, int vain, int64_t *out)
{
    sem_t *lock;
    char byte = 'w';

    out[0] = now_ns();
    if (wake >= 0 && write(wake, &byte, 1) != 1)
        _exit(9);
    while (!(lock = waited_for()))
        usleep(50);
    out[1] = now_ns();
    out[2] = out[3] = out[1];
    for (int woken = 0; woken < vain;) {
        if (woken == 0)
            out[2] = now_ns();
        if (syscall(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0) == 1) {
            woken++;
            if (woken == 2)
                out[3] = now_ns();
        } else {
            usleep(50);
        }
    }
    if (until >= 0 &&
        (dprintf(STDOUT_FILENO, "{\"waits\": true}\n") < 0 || read(until, &byte, 1) != 1))
        _exit(9);
    while (now_ns() - out[1] < ns)
        usleep(200);
    out[4] = now_ns();
}

// Called without the GIL, which nobody has: wakes the thread that reads from `go`, frees the
// semaphore that it comes to wait for, and returns when it has come to `rounds_park` with this
// flag, without the GIL again.
void rounds_free_other(int go, int flag)
{
    sem_t *lock;
    char byte = 'g';

    if (write(go, &byte, 1) != 1)
        _exit(9);
    while (!(lock = waited_for()))
        usleep(50);
    sem_post(lock);
    while (!flags[flag])
        usleep(50);
}

// Called without the GIL: says so, and stays.
void rounds_park(int flag)
{
    flags[flag] = 1;
    for (;;)
        pause();
}
