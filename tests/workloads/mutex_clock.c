// The truth about waits for PyPy's GIL, read at the very mutexes that it is waited for by.
//
// LD_PRELOAD puts these functions before the C library's. A call is known by where it returns to in
// PyPy's library: CLOCK_FIRST to CLOCK_LAST is the code that waits, CLOCK_TAKEN the call with which
// a wait ends, CLOCK_GIVEN the one with which a thread yields. What each thread has waited goes to
// the file CLOCK_OUT when the program ends: its id, nanoseconds, and how often.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 64

static struct {
    long tid;
    uint64_t ns;
    uint64_t waits;
} sums[MOST_THREADS];
static int threads;
static uintptr_t library, first, last, taken, given;
static int (*real_lock)(pthread_mutex_t *);
static int (*real_unlock)(pthread_mutex_t *);
static __thread uint64_t began_ns;
static __thread int own = -1;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static uintptr_t given_as(const char *name)
{
    const char *value = getenv(name);

    return value ? strtoul(value, NULL, 0) : 0;
}

static int find_library(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    if (strstr(info->dlpi_name, "libpypy"))
        library = info->dlpi_addr;
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    real_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    real_unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    first = given_as("CLOCK_FIRST");
    last = given_as("CLOCK_LAST");
    taken = given_as("CLOCK_TAKEN");
    given = given_as("CLOCK_GIVEN");
    dl_iterate_phdr(find_library, NULL);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    uintptr_t caller = (uintptr_t)__builtin_return_address(0) - library;

    if (!real_lock)
        begin();
    // A thread that yields may take it back at once, and has not waited then.
    if (library && (caller == given || (!began_ns && caller >= first && caller < last)))
        began_ns = now_ns();
    return real_lock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    uintptr_t caller = (uintptr_t)__builtin_return_address(0) - library;

    if (!real_unlock)
        begin();
    if (library && caller == taken) {
        uint64_t ended_ns = now_ns();

        if (own < 0) {
            own = __sync_fetch_and_add(&threads, 1) % MOST_THREADS;
            sums[own].tid = syscall(SYS_gettid);
        }
        // Who finds it free after all has not come to a mutex before.
        sums[own].ns += began_ns ? ended_ns - began_ns : 0;
        sums[own].waits++;
        began_ns = 0;
    }
    return real_unlock(mutex);
}

__attribute__((destructor)) static void end(void)
{
    const char *name = getenv("CLOCK_OUT");
    FILE *out = name ? fopen(name, "w") : NULL;

    for (int at = 0; out && at < threads && at < MOST_THREADS; at++)
        fprintf(out, "%ld %lu %lu\n", sums[at].tid, sums[at].ns, sums[at].waits);
    if (out)
        fclose(out);
}
