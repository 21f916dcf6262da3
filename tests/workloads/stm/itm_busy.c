// The smallest transactions of GCC's libitm, one after the other: what tracing them costs most.
//
// itm_busy THREADS: says `ready`; from the first line on standard input on all threads run
// transactions until it ends, and at each line the number of those that were committed is printed.

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_THREADS 16
#define APART 64 // a cache line, so that threads do not slow each other down

static struct {
    long sum;
    atomic_long commits;
    char apart[APART];
} own[MOST_THREADS];

static void *work(void *argument)
{
    long number = (long)argument;

    for (;;) {
        __transaction_atomic
        {
            own[number].sum++;
        }
        atomic_fetch_add_explicit(&own[number].commits, 1, memory_order_relaxed);
    }
    return 0;
}

int main(int count, char **arguments)
{
    int threads = count > 1 ? atoi(arguments[1]) : 1, is_begun = 0;
    pthread_t thread;
    char line[16];

    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        long commits = 0;

        for (long i = 0; i < threads; i++) {
            if (!is_begun)
                pthread_create(&thread, 0, work, (void *)i);
            commits += atomic_load_explicit(&own[i].commits, memory_order_relaxed);
        }
        is_begun = 1;
        printf("%ld\n", commits);
        fflush(stdout);
    }
    return 0;
}
