/* Waits for the GIL of which both ends are known: a waiter sleeps in one call, and a holder keeps
 * the GIL in another one until the kernel says that the waiter sleeps, and for a given time more.
 *
 * Known answer: blame_waiter.waits and .wait_ns, counted around PyEval_RestoreThread. The
 * true wait lies between .wait_ns less .uncertain_ns, and .wait_ns. Each wait lies wholly inside
 * one call of blame_hold, or between blame_wake and the end of what its caller does next. Built
 * without Python's headers, so one shared library serves every version.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u
#define MOST_WAITERS 8

static struct {
    void *(*save_thread)(void);
    void (*restore_thread)(void *);
    int (*gilstate_ensure)(void);
    void (*gilstate_release)(int);
} python;

static sem_t begun, done;

struct blame_waiter {
    uint64_t waits, wait_ns; /* finished ones */
    uint64_t uncertain_ns;   /* of those, ready without a CPU: perhaps at their ends */
    sem_t go, idle;
    atomic_int is_taking, is_over;
    pid_t tid;
};

struct blame_group {
    uint64_t count;
    struct blame_waiter *waiters[MOST_WAITERS];
};

__attribute__((constructor)) static void prepare(void)
{
    *(void **)&python.save_thread = dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
    *(void **)&python.restore_thread = dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
    *(void **)&python.gilstate_ensure = dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    *(void **)&python.gilstate_release = dlsym(RTLD_DEFAULT, "PyGILState_Release");
    sem_init(&begun, 0, 0);
    sem_init(&done, 0, 0);
}

size_t blame_waiter_size(void)
{
    return sizeof(struct blame_waiter);
}

void blame_prepare(struct blame_waiter *waiter)
{
    memset(waiter, 0, sizeof(*waiter));
    sem_init(&waiter->go, 0, 0);
    sem_init(&waiter->idle, 0, 0);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void sleep_for(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR)
        ;
}

static uint64_t run_delay_ns(void)
{
    static _Thread_local int fd = -1;
    char text[96];
    unsigned long long on_cpu_ns, delay_ns;
    if (fd < 0)
        fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    return sscanf(text, "%llu %llu", &on_cpu_ns, &delay_ns) == 2 ? delay_ns : 0;
}

/* Called with the GIL. Goes idle without it, waits for it once, and returns 1 with it; 0 when it
 * is all over.
 */
int blame_wait(struct blame_waiter *waiter)
{
    waiter->tid = (pid_t)syscall(SYS_gettid);
    void *thread_state = python.save_thread();
    sem_post(&waiter->idle);
    wait_for(&waiter->go);
    uint64_t delay_ns = run_delay_ns(), before_ns = now_ns();
    atomic_store(&waiter->is_taking, 1);
    python.restore_thread(thread_state);
    uint64_t after_ns = now_ns();
    atomic_store(&waiter->is_taking, 0);
    if (atomic_load(&waiter->is_over))
        return 0;
    waiter->waits++;
    waiter->wait_ns += after_ns - before_ns;
    waiter->uncertain_ns += run_delay_ns() - delay_ns;
    return 1;
}

static char task_state(pid_t tid)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return '?';
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    /* The command's name is in brackets and may hold anything. */
    char *bracket = strrchr(text, ')');
    return bracket != NULL && bracket[1] == ' ' ? bracket[2] : '?';
}

/* Called with the GIL while all waiters are idle; returns 0 when each of them sleeps in its wait:
 * from the moment is_taking is set, there is no other place to sleep in.
 */
int blame_wake(struct blame_group *group)
{
    for (uint64_t i = 0; i < group->count; i++)
        sem_post(&group->waiters[i]->go);
    for (uint64_t i = 0; i < group->count; i++) {
        struct blame_waiter *waiter = group->waiters[i];
        while (!atomic_load(&waiter->is_taking) || task_state(waiter->tid) != 'S')
            sched_yield();
    }
    return 0;
}

/* For a caller without the GIL: returns when all waiters are idle. */
void blame_await_idle(struct blame_group *group)
{
    for (uint64_t i = 0; i < group->count; i++)
        wait_for(&group->waiters[i]->idle);
}

/* Called with the GIL: gives it to all waiters in turn, and takes it back when nobody wants it. */
void blame_let_go(struct blame_group *group)
{
    void *thread_state = python.save_thread();
    blame_await_idle(group);
    python.restore_thread(thread_state);
}

/* Called with the GIL: keeps all waiters waiting for *ns*, without using the CPU. */
void blame_hold(struct blame_group *group, uint64_t ns)
{
    blame_wake(group);
    sleep_for(ns);
    blame_let_go(group);
}

/* Called with the GIL: the same, but whoever called gives it up, not this function. */
void blame_keep(struct blame_group *group, uint64_t ns)
{
    blame_wake(group);
    sleep_for(ns);
}

/* Called without the GIL while all waiters are idle: there is no more to wait for. */
void blame_end(struct blame_group *group)
{
    for (uint64_t i = 0; i < group->count; i++) {
        atomic_store(&group->waiters[i]->is_over, 1);
        sem_post(&group->waiters[i]->go);
    }
}

/* The main thread stays here, without the GIL, while the others play. */

void blame_play(void)
{
    sem_post(&begun);
    wait_for(&done);
}

void blame_await_begin(void)
{
    wait_for(&begun);
}

void blame_done(void)
{
    sem_post(&done);
}

/* Threads that Python did not start. */

struct native_job {
    void (*python_function)(void); /* or NULL */
    struct blame_waiter *waiter;   /* or NULL */
    struct blame_group *group;
    uint64_t ns, rounds;
};

static void *native_main(void *argument)
{
    struct native_job *job = argument;
    int state = python.gilstate_ensure();
    if (job->waiter != NULL)
        while (blame_wait(job->waiter))
            ;
    for (uint64_t i = 0; i < job->rounds; i++)
        blame_hold(job->group, job->ns);
    if (job->python_function != NULL)
        job->python_function();
    python.gilstate_release(state);
    return NULL;
}

static pthread_t start(struct native_job *job)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, native_main, job) != 0)
        return 0;
    return thread;
}

/* Called without the GIL, like all below: returns when the thread has called the function. */
void blame_native_call(void (*python_function)(void))
{
    struct native_job job = {.python_function = python_function};
    pthread_join(start(&job), NULL);
}

/* Returns when the thread has held the GIL *rounds* times without any Python code on its stack. */
void blame_native_hold(struct blame_group *group, uint64_t ns, uint64_t rounds)
{
    struct native_job job = {.group = group, .ns = ns, .rounds = rounds};
    pthread_join(start(&job), NULL);
}

/* The thread waits without any Python code on its stack; returns after blame_end. */
void blame_native_wait(struct blame_waiter *waiter)
{
    struct native_job job = {.waiter = waiter};
    pthread_join(start(&job), NULL);
}

/* Returns a descriptor that can be read from every *interval_ns*. */
int blame_timer(uint64_t interval_ns)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct timespec interval = {(time_t)(interval_ns / NS_PER_S), (long)(interval_ns % NS_PER_S)};
    struct itimerspec both = {interval, interval};
    timerfd_settime(fd, 0, &both, NULL);
    return fd;
}
