// Behaves like a PyPy-STM with many threads, and knows to the event what it did.
//
// stmgc THREADS ROUNDS [log]: says `ready`. At each line `run` that many threads are started, run
// ROUNDS rounds each and end, and what all of them came to is printed as JSON. With `log` events
// are logged (to nowhere); a line `log` begins that later. `calls N` has the main thread make N
// small calls to outside of its transaction, and prints what they took, nanoseconds of
// CPU time.
//
// Compiled with -DC7 it has the names and the numbers of C7, else those of the last C8. There are 8
// segments (4 in C7), and a thread without one waits. One transaction at most is inevitable; who
// wants to become so waits for it, or commits it where its thread has left it open outside. Each
// is certain to happen in the first round, however the threads are scheduled.
//
// Times are told as brackets. A clock is read before and after each event is given away, and
// whoever is given it reads the same clock in between: so each sum lies between `least` and `most`.

#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 64
#define WORK_NS 20000
#define CALL_TURNS 300 // about a microsecond
#define FUNCTION __attribute__((noipa))

#ifdef C7
#define SEGMENTS 4
enum event {
    START,
    COMMIT,
    ABORT,
    WRITE_WRITE,
    WRITE_READ,
    INEVITABLE,
    ABORTING_OTHER,
    FREE_SEGMENT,
    SYNC_PAUSE,
    CONTENTION,
    DONE,
    MINOR_START,
    MINOR_DONE,
    MAJOR_START,
    MAJOR_DONE,
};
#define WAIT_FOR_INEVITABLE CONTENTION
#else
#define SEGMENTS 8
enum event {
    START,
    COMMIT,
    ABORT,
    DETACH,
    REATTACH,
    INEVITABLE,
    WRITE_READ,
    FREE_SEGMENT,
    SYNCING,
    SYNC_PAUSE,
    OTHER_INEVITABLE,
    DONE,
    MINOR_START,
    MINOR_DONE,
    MAJOR_START,
    MAJOR_DONE,
};
#define WAIT_FOR_INEVITABLE OTHER_INEVITABLE
#endif
#define EVENTS 16

struct instant {
    int64_t before_ns, after_ns;
};

// A sum of times between two instants.
struct sum {
    int64_t least_ns, most_ns;
};

// What stmgc calls a thread-local structure.
struct thread {
    jmp_buf again;
    struct instant began, waiting, detached, collecting[2];
    struct sum waited, outside; // of the try in flight
    int wait, number, tid, has_arrived, is_inevitable, is_taken;
    long commits, aborts;
};

static struct thread known[MOST_THREADS];
static __thread struct thread *self;
static int threads, rounds;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int free_segments = SEGMENTS, arrived, has_detached, waiting_for_inevitable, runs_taken;
static struct thread *inevitable;

static long counts[EVENTS], waits[EVENTS], collections[2], calls[4];
static struct sum committed, aborted, wait_sums[EVENTS], collected[2];

void (*stmcb_timing_event)(struct thread *, int, void *);

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void work(void)
{
    int64_t until_ns = now_ns() + WORK_NS;

    while (now_ns() < until_ns)
        ;
}

FUNCTION static void _stm_profiling_event(struct thread *thread, int event, void *marker)
{
    __asm__ volatile("" ::"r"(thread), "r"(event), "r"(marker));
}

static int64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static struct sum between(struct instant from, struct instant to)
{
    return (struct sum){to.before_ns - from.after_ns, to.after_ns - from.before_ns};
}

static void add(struct sum *sum, struct sum more)
{
    sum->least_ns += more.least_ns;
    sum->most_ns += more.most_ns;
}

static struct sum less(struct sum all, struct sum part)
{
    return (struct sum){all.least_ns - part.most_ns, all.most_ns - part.least_ns};
}

static void collection(struct thread *thread, int generation, struct instant at)
{
    add(&collected[generation], between(thread->collecting[generation], at));
    collections[generation]++;
}

// Gives an event away, and keeps the program's own account. The lock is held.
static void emit_of(struct thread *thread, int event)
{
    long marker[2] = {2 * thread->number + 1, (long)thread};
    struct instant at = {.before_ns = now_ns()};

    if (stmcb_timing_event)
        stmcb_timing_event(thread, event, event == COMMIT ? 0 : marker);
    at.after_ns = now_ns();
    counts[event]++;
    switch (event) {
    case START:
        thread->began = at;
        thread->waited = thread->outside = (struct sum){0, 0};
        break;
    case COMMIT:
        add(&committed, less(less(between(thread->began, at), thread->waited), thread->outside));
        thread->commits++;
        break;
    case ABORT:
        add(&aborted, less(less(between(thread->began, at), thread->waited), thread->outside));
        thread->aborts++;
        break;
#ifndef C7
    case DETACH:
        thread->detached = at;
        break;
    case REATTACH:
        add(&thread->outside, between(thread->detached, at));
        break;
    case SYNCING:
#endif
    case FREE_SEGMENT:
    case SYNC_PAUSE:
    case WAIT_FOR_INEVITABLE:
        thread->waiting = at;
        thread->wait = event;
        break;
    case DONE:
        add(&thread->waited, between(thread->waiting, at));
        add(&wait_sums[thread->wait], between(thread->waiting, at));
        waits[thread->wait]++;
        break;
    case MINOR_START:
    case MAJOR_START:
        thread->collecting[event == MAJOR_START] = at;
        break;
    case MINOR_DONE:
    case MAJOR_DONE:
        collection(thread, event == MAJOR_DONE, at);
        break;
    }
}

static void emit(int event)
{
    pthread_mutex_lock(&lock);
    emit_of(self, event);
    pthread_mutex_unlock(&lock);
}

static void await(void)
{
    pthread_cond_wait(&changed, &lock);
}

// One try begins, as soon as there is a segment for it.
FUNCTION static void begin_try(struct thread *thread)
{
    pthread_mutex_lock(&lock);
    int has_to_wait = !free_segments;

    if (has_to_wait)
        emit_of(thread, FREE_SEGMENT);
    arrived += !thread->has_arrived;
    thread->has_arrived = 1;
    pthread_cond_broadcast(&changed);
    while (!free_segments)
        await();
    if (has_to_wait)
        emit_of(thread, DONE);
    free_segments--;
    emit_of(thread, START);
    pthread_mutex_unlock(&lock);
}

// The lock is held.
static void end_try(struct thread *thread, int event)
{
    emit_of(thread, event);
    free_segments++;
    if (inevitable == thread)
        inevitable = 0;
    thread->is_inevitable = 0;
    pthread_cond_broadcast(&changed);
}

#ifdef C7
// Called at each try, under the name that in C8 is that of what is called once.
FUNCTION static void _stm_start_transaction(struct thread *thread)
{
    begin_try(thread);
}

FUNCTION void stm_start_transaction(struct thread *thread)
{
    self = thread;
    __atomic_fetch_add(&calls[0], 1, __ATOMIC_RELAXED);
    _stm_start_transaction(thread);
}

#define start stm_start_transaction
#else
FUNCTION void _stm_start_transaction(struct thread *thread)
{
    self = thread;
    __atomic_fetch_add(&calls[0], 1, __ATOMIC_RELAXED);
    begin_try(thread);
}

FUNCTION int stm_validate(void)
{
    return 0;
}

FUNCTION int stm_hashtable_iter(void)
{
    return 0;
}

#define start _stm_start_transaction
#endif

FUNCTION void _stm_commit_transaction(void)
{
    pthread_mutex_lock(&lock);
    end_try(self, COMMIT);
    pthread_mutex_unlock(&lock);
}

FUNCTION void stm_abort_transaction(void)
{
    pthread_mutex_lock(&lock);
    end_try(self, ABORT);
    pthread_mutex_unlock(&lock);
    longjmp(self->again, 1);
}

FUNCTION static void abort_for_a_conflict(void)
{
    emit(WRITE_READ);
#ifdef C7
    // As its abort_with_mutex, which has no exported name.
    pthread_mutex_lock(&lock);
    end_try(self, ABORT);
    pthread_mutex_unlock(&lock);
    longjmp(self->again, 1);
#else
    stm_abort_transaction();
#endif
}

FUNCTION void _stm_become_inevitable(const char *reason)
{
    __asm__ volatile("" ::"r"(reason));
    pthread_mutex_lock(&lock);
    calls[reason > (const char *)4096 ? 1 : 2]++;
    int is_waiting = 0;

#ifndef C7
    emit_of(self, INEVITABLE);
#endif

    while (inevitable) {
#ifndef C7
        if (inevitable->is_taken == 1) {
            // Left open outside: committed here, in the name of the thread that began it.
            struct thread *other = inevitable;

            emit_of(other, REATTACH);
            end_try(other, COMMIT);
            other->is_taken = 2;
            runs_taken++;
            continue;
        }
#endif
        if (!is_waiting) {
#ifdef C7
            emit_of(self, INEVITABLE);
#endif
            emit_of(self, WAIT_FOR_INEVITABLE);
            waiting_for_inevitable++;
            pthread_cond_broadcast(&changed);
        }
        is_waiting = 1;
        await();
    }
    if (is_waiting)
        emit_of(self, DONE);
    inevitable = self;
    self->is_inevitable = 1;
    pthread_mutex_unlock(&lock);
}

#ifndef C7
// The lock is held.
static void detach(void)
{
    emit_of(self, DETACH);
    self->is_taken = 1;
    has_detached = 1;
    pthread_cond_broadcast(&changed);
}

FUNCTION void _stm_leave_noninevitable_transactional_zone(void)
{
    _stm_become_inevitable((const char *)1);
    __asm__ volatile("");
}

FUNCTION void _stm_reattach_transaction(struct thread *thread)
{
    _stm_start_transaction(thread);
}

static __attribute__((always_inline)) inline void leave(void)
{
    if (!self->is_inevitable)
        _stm_leave_noninevitable_transactional_zone();
    pthread_mutex_lock(&lock);
    detach();
    pthread_mutex_unlock(&lock);
}

static void enter(void)
{
    pthread_mutex_lock(&lock);
    int is_mine = self->is_taken == 1;

    if (is_mine)
        emit_of(self, REATTACH);
    self->is_taken = 0;
    pthread_mutex_unlock(&lock);
    if (!is_mine)
        _stm_reattach_transaction(self);
}

FUNCTION static void call_write(int until_taken)
{
    leave();
    pthread_mutex_lock(&lock);
    while (until_taken && self->is_taken == 1)
        await();
    pthread_mutex_unlock(&lock);
    work();
    enter();
}

FUNCTION static void call_select(void)
{
    leave();
    work();
    enter();
}
#endif

FUNCTION int stm_set_timing_log(const char *name)
{
    stmcb_timing_event = name ? _stm_profiling_event : 0;
    return 0;
}

FUNCTION void stm_register_thread_local(struct thread *thread)
{
    thread->tid = (int)syscall(SYS_gettid);
}

FUNCTION void stm_unregister_thread_local(struct thread *thread)
{
    __asm__ volatile("" ::"r"(thread));
}

static void collect_minor(void)
{
    emit(MINOR_START);
    work();
    emit(MINOR_DONE);
}

static void collect_major(int is_cut_short)
{
    emit(MAJOR_START);
#ifndef C7
    emit(SYNCING);
    work();
    emit(DONE);
#endif
    if (is_cut_short)
        abort_for_a_conflict();
    emit(MAJOR_DONE);
}

// Until so many have begun a transaction, or wait for a segment to begin it in.
static void await_arrived(int number)
{
    pthread_mutex_lock(&lock);
    while (arrived < number)
        await();
    pthread_mutex_unlock(&lock);
}

// The first who is inevitable after the one that was left open stays so until another one waits.
static void stay_inevitable_until_one_waits(void)
{
    pthread_mutex_lock(&lock);
    while (!waiting_for_inevitable)
        await();
    pthread_mutex_unlock(&lock);
}

static void first_inevitable(int number)
{
#ifdef C7
    (void)number;
    _stm_become_inevitable("time:gettimeofday()");
#else
    if (!number) {
        call_write(1);
        return;
    }
    pthread_mutex_lock(&lock);
    while (!has_detached)
        await();
    pthread_mutex_unlock(&lock);
    _stm_become_inevitable("time:gettimeofday()");
#endif
    stay_inevitable_until_one_waits();
}

static void a_round(struct thread *thread, int round)
{
    volatile int tries = 0;

    start(thread);
    if (setjmp(thread->again))
        begin_try(thread);
    tries++;
    if (!round && tries == 1)
        await_arrived(threads);
    work();
    collect_minor();
    // The first thread has the segment that it began with until its transaction is taken over:
    // the others, with all segments in their hands, wait for that.
    if (tries == 1 && round % 3 == 0 && (round || thread->number))
        abort_for_a_conflict();
    if (tries < 3 && round % 7 == 3)
        collect_major(tries == 1);
    if (round % 4 == 2) {
        emit(SYNC_PAUSE);
        work();
        emit(DONE);
    }
    if (!round)
        first_inevitable(thread->number);
    else if (round % 4 == 1)
        _stm_become_inevitable("W_Epoll.descr_poll:getfield");
#ifndef C7
    if (round % 2)
        call_write(0);
    else if (round)
        call_select();
#endif
    work();
    _stm_commit_transaction();
}

static void *run(void *argument)
{
    struct thread *thread = argument;

    self = thread;
    stm_register_thread_local(thread);
    for (int i = 0; i < rounds; i++)
        a_round(thread, i);
    stm_unregister_thread_local(thread);
    return 0;
}

static void run_all(void)
{
    pthread_t started[MOST_THREADS];

    arrived = has_detached = waiting_for_inevitable = 0;
    for (int i = 0; i < threads; i++) {
        known[i].number = i;
        known[i].has_arrived = 0;
        pthread_create(&started[i], 0, run, &known[i]);
        await_arrived(1);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(started[i], 0);
}

static void make_calls(long number)
{
    int64_t began_ns;

    self = &known[MOST_THREADS - 1];
    start(self);
    _stm_become_inevitable("calls");
    began_ns = cpu_ns();
#ifdef C7
    (void)number;
#else
    for (long i = 0; i < number; i++) {
        if (stmcb_timing_event)
            stmcb_timing_event(self, DETACH, 0);
        for (volatile int turn = 0; turn < CALL_TURNS; turn++)
            ;
        if (stmcb_timing_event)
            stmcb_timing_event(self, REATTACH, 0);
    }
#endif
    printf("%ld\n", (long)(cpu_ns() - began_ns));
    _stm_commit_transaction();
    fflush(stdout);
}

static void tell_sum(const char *name, struct sum sum, long count)
{
    printf("\"%s\": {\"count\": %ld, \"least_ns\": %ld, \"most_ns\": %ld}, ", name, count,
           (long)sum.least_ns, (long)sum.most_ns);
}

static void tell(void)
{
    printf("{");
    tell_sum("committed", committed, counts[COMMIT]);
    tell_sum("aborted", aborted, counts[ABORT]);
    tell_sum("STM_WAIT_FREE_SEGMENT", wait_sums[FREE_SEGMENT], waits[FREE_SEGMENT]);
    tell_sum("STM_WAIT_SYNC_PAUSE", wait_sums[SYNC_PAUSE], waits[SYNC_PAUSE]);
#ifdef C7
    tell_sum("STM_WAIT_CONTENTION", wait_sums[CONTENTION], waits[CONTENTION]);
    printf("\"conflicts\": %ld, ", counts[WRITE_READ] + counts[INEVITABLE]);
#else
    tell_sum("STM_WAIT_SYNCING", wait_sums[SYNCING], waits[SYNCING]);
    tell_sum("STM_WAIT_OTHER_INEVITABLE", wait_sums[OTHER_INEVITABLE], waits[OTHER_INEVITABLE]);
    printf("\"conflicts\": %ld, ", counts[WRITE_READ]);
#endif
    tell_sum("minor", collected[0], collections[0]);
    tell_sum("major", collected[1], collections[1]);
    printf("\"taken_over\": %d, \"began\": %ld, \"with_reason\": %ld, \"without_reason\": %ld, "
           "\"threads\": {",
           runs_taken, calls[0], calls[1], calls[2]);
    for (int i = 0; i < threads; i++)
        printf("%s\"%d\": [%ld, %ld]", i ? ", " : "", known[i].tid, known[i].commits,
               known[i].aborts);
    printf("}}\n");
    fflush(stdout);
}

int main(int count, char **arguments)
{
    char line[32];

    if (count < 3 || atoi(arguments[1]) >= MOST_THREADS)
        return 2;
    threads = atoi(arguments[1]);
    rounds = atoi(arguments[2]);
    stm_set_timing_log(count > 3 ? "/dev/null" : 0);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (!strcmp(line, "log\n")) {
            stm_set_timing_log("/dev/null");
            puts("logs");
            fflush(stdout);
        } else if (!strncmp(line, "calls ", 6)) {
            make_calls(atol(line + 6));
        } else {
            run_all();
            tell();
        }
    }
    return 0;
}
