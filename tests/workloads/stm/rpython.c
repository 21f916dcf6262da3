// Stands in for PyPy-STM: exports the names of an RPython program with transactions, calls them as
// one does, and knows what it did.
//
// rpython THREADS ROUNDS [log]: says `ready`, and at each line on standard input has every thread
// run ROUNDS rounds and prints what that came to, as JSON. Then it waits. With `log` events are
// logged (to nowhere). A line `close` ends the log, as an error of writing would; at a line `churn`
// ROUNDS threads run one round each, one after the other, and each is known by another address;
// `again` begins the whole program again. At `start` the main thread begins a transaction, and
// leaves it open; at `commit` it commits that, and at `abort` it aborts it.
//
// A round is a transaction that waits for a segment first, conflicts once and commits at its second
// try, in which it waits for another one, becomes inevitable and is detached for a while. After its
// rounds each thread leaves one more transaction open outside, which the main thread commits.

#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 16
#define PAUSE_NS 400000
#define FUNCTION __attribute__((noipa))

enum event {
    START = 0,
    COMMIT = 1,
    ABORT = 2,
    DETACH = 3,
    REATTACH = 4,
    INEVITABLE = 5,
    WRITE_READ = 6,
    FREE_SEGMENT = 7,
    OTHER_INEVITABLE = 10,
    DONE = 11,
};

struct thread {
    jmp_buf again;
    int64_t began_ns, waiting_ns, waited_ns, detached_ns;
    int64_t committed_ns, aborted_ns, free_segment_ns, other_inevitable_ns;
    int waits_for_segment;
};

static struct thread known[MOST_THREADS];
static __thread struct thread *self;
static int threads, rounds;
static pthread_barrier_t begun, ended;

void (*stmcb_timing_event)(struct thread *, int, void *);

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void spin(int64_t ns)
{
    int64_t until_ns = now_ns() + ns;

    while (now_ns() < until_ns)
        ;
}

FUNCTION static void _stm_profiling_event(struct thread *thread, int event, void *marker)
{
    __asm__ volatile("" ::"r"(thread), "r"(event), "r"(marker));
}

// The account of the program itself, and the call that the probe sees.
static void emit(int event)
{
    int64_t at_ns = now_ns();

    if (stmcb_timing_event)
        stmcb_timing_event(self, event, 0);
    switch (event) {
    case START:
        self->began_ns = at_ns;
        self->waited_ns = self->detached_ns = 0;
        break;
    case COMMIT:
        self->committed_ns += at_ns - self->began_ns - self->waited_ns - self->detached_ns;
        break;
    case ABORT:
        self->aborted_ns += at_ns - self->began_ns - self->waited_ns;
        break;
    case DETACH:
        self->detached_ns -= at_ns;
        break;
    case REATTACH:
        self->detached_ns += at_ns;
        break;
    case FREE_SEGMENT:
    case OTHER_INEVITABLE:
        self->waits_for_segment = event == FREE_SEGMENT;
        self->waiting_ns = at_ns;
        break;
    case DONE:
        at_ns -= self->waiting_ns;
        self->waited_ns += at_ns;
        *(self->waits_for_segment ? &self->free_segment_ns : &self->other_inevitable_ns) += at_ns;
        break;
    }
}

FUNCTION void _stm_start_transaction(struct thread *thread)
{
    self = thread;
    emit(FREE_SEGMENT);
    spin(PAUSE_NS / 2);
    emit(DONE);
    emit(START);
}

FUNCTION void _stm_commit_transaction(void)
{
    emit(COMMIT);
}

FUNCTION void stm_abort_transaction(void)
{
    emit(ABORT);
    longjmp(self->again, 1);
}

FUNCTION void _stm_become_inevitable(const char *reason)
{
    __asm__ volatile("" ::"r"(reason));
    emit(INEVITABLE);
    emit(OTHER_INEVITABLE);
    spin(PAUSE_NS / 2);
    emit(DONE);
}

FUNCTION void _stm_leave_noninevitable_transactional_zone(void)
{
    _stm_become_inevitable("leave_noninevitable_transactional_zone atomic");
    emit(DETACH);
}

FUNCTION void _stm_reattach_transaction(struct thread *thread)
{
    __asm__ volatile("" ::"r"(thread));
    emit(REATTACH);
}

// By these a program of the last numbering is known.
FUNCTION int stm_validate(void)
{
    return 0;
}

FUNCTION void stm_unregister_thread_local(struct thread *thread)
{
    __asm__ volatile("" ::"r"(thread));
}

FUNCTION int stm_hashtable_iter(void)
{
    return 0;
}

FUNCTION int stm_set_timing_log(const char *name)
{
    stmcb_timing_event = name ? _stm_profiling_event : 0;
    return 0;
}

static void a_round(struct thread *thread, int number)
{
    _stm_start_transaction(thread);
    if (!setjmp(thread->again)) {
        spin(PAUSE_NS);
        emit(WRITE_READ);
        stm_abort_transaction();
    }
    emit(START);
    spin(PAUSE_NS);
    _stm_become_inevitable(number % 2 ? (const char *)1 : "time:gettimeofday()");
    _stm_leave_noninevitable_transactional_zone();
    spin(PAUSE_NS);
    _stm_reattach_transaction(thread);
    _stm_commit_transaction();
}

static void *work(void *argument)
{
    struct thread *thread = argument;

    for (;;) {
        pthread_barrier_wait(&begun);
        for (int i = 0; i < rounds; i++)
            a_round(thread, i);
        _stm_start_transaction(thread);
        emit(DETACH);
        pthread_barrier_wait(&ended);
    }
    return 0;
}

static void take_over(struct thread *thread)
{
    self = thread;
    _stm_reattach_transaction(thread);
    _stm_commit_transaction();
}

static void abort_open(struct thread *thread)
{
    self = thread;
    if (!setjmp(thread->again))
        stm_abort_transaction();
}

static void *work_once(void *argument)
{
    a_round(argument, 0);
    stm_unregister_thread_local(argument);
    return 0;
}

static void churn(void)
{
    // Not given back, so that no address is used twice.
    struct thread *many = calloc(rounds, sizeof(*many));
    pthread_t thread;

    for (int i = 0; i < rounds; i++) {
        pthread_create(&thread, 0, work_once, &many[i]);
        pthread_join(thread, 0);
    }
}

static void tell(void)
{
    struct thread sum = {.committed_ns = 0};

    for (int i = 0; i < threads; i++) {
        sum.committed_ns += known[i].committed_ns;
        sum.aborted_ns += known[i].aborted_ns;
        sum.free_segment_ns += known[i].free_segment_ns;
        sum.other_inevitable_ns += known[i].other_inevitable_ns;
    }
    printf("{\"committed_ns\": %ld, \"aborted_ns\": %ld, \"free_segment_ns\": %ld, "
           "\"other_inevitable_ns\": %ld}\n",
           sum.committed_ns, sum.aborted_ns, sum.free_segment_ns, sum.other_inevitable_ns);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    pthread_t thread;
    char line[16];

    threads = count > 2 ? atoi(arguments[1]) : 1;
    rounds = count > 2 ? atoi(arguments[2]) : 1;
    stm_set_timing_log(count > 3 ? "/dev/null" : 0);
    pthread_barrier_init(&begun, 0, threads + 1);
    pthread_barrier_init(&ended, 0, threads + 1);
    for (int i = 0; i < threads; i++)
        pthread_create(&thread, 0, work, &known[i]);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (!strcmp(line, "close\n"))
            stm_set_timing_log(0);
        else if (!strcmp(line, "churn\n"))
            churn();
        else if (!strcmp(line, "start\n"))
            _stm_start_transaction(&known[0]);
        else if (!strcmp(line, "commit\n"))
            take_over(&known[0]);
        else if (!strcmp(line, "abort\n"))
            abort_open(&known[0]);
        else if (!strcmp(line, "again\n"))
            execv("/proc/self/exe", arguments);
        else {
            pthread_barrier_wait(&begun);
            pthread_barrier_wait(&ended);
            for (int i = 0; i < threads; i++)
                take_over(&known[i]);
        }
        tell();
    }
    return 0;
}
