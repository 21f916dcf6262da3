// The truth about holds of a lock that is a semaphore, read around the very calls that take it and
// give it back.
//
// LD_PRELOAD puts these functions before the C library's. A hold runs from the return of sem_wait
// to the call of sem_post by the same thread. What each thread has held of each semaphore goes to
// the file CLOCK_OUT when the program ends: the semaphore's address, the thread's id, nanoseconds,
// and how often. Which of them is the lock is for the reader to say.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST 4096

struct held {
    sem_t *semaphore;
    long tid;
    uint64_t since_ns, ns, holds;
    struct held *next; // of the same thread
};

static struct held all[MOST];
static int used;
static __thread struct held *own;
static int (*real_wait)(sem_t *);
static int (*real_post)(sem_t *);

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

__attribute__((constructor)) static void begin(void)
{
    real_wait = dlsym(RTLD_NEXT, "sem_wait");
    real_post = dlsym(RTLD_NEXT, "sem_post");
}

static struct held *own_of(sem_t *semaphore)
{
    struct held *found = own;

    while (found && found->semaphore != semaphore)
        found = found->next;
    return found;
}

int sem_wait(sem_t *semaphore)
{
    if (!real_wait)
        begin();
    struct held *held = own_of(semaphore);

    if (!held) {
        int at = __sync_fetch_and_add(&used, 1);

        if (at >= MOST)
            abort();
        held = &all[at];
        held->semaphore = semaphore;
        held->tid = syscall(SYS_gettid);
        held->next = own;
        own = held;
    }
    int result = real_wait(semaphore);

    if (!result)
        held->since_ns = now_ns();
    return result;
}

int sem_post(sem_t *semaphore)
{
    uint64_t ended_ns = now_ns();
    struct held *held = own_of(semaphore);

    if (!real_post)
        begin();
    if (held && held->since_ns) {
        held->ns += ended_ns - held->since_ns;
        held->holds++;
        held->since_ns = 0;
    }
    return real_post(semaphore);
}

__attribute__((destructor)) static void end(void)
{
    const char *name = getenv("CLOCK_OUT");
    FILE *out = name ? fopen(name, "w") : NULL;

    for (int at = 0; out && at < used; at++)
        fprintf(out, "%lu %ld %lu %lu\n", (unsigned long)all[at].semaphore, all[at].tid, all[at].ns,
                all[at].holds);
    if (out)
        fclose(out);
}
