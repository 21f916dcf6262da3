// Transactions of GCC's libitm with known counts: a program for the live tests.
//
// itm THREADS ROUNDS [fight]: says `ready`, and at each line on standard input has every thread run
// ROUNDS rounds and says `done`. A round is a transaction that writes, one that only reads, one
// with a nested one, and one that the program cancels: 3 commits and 1 cancel. With `fight` all
// threads write to the same places, so that some have to be restarted; otherwise none does.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define PLACES 64
#define MOST_THREADS 16

static long places[MOST_THREADS][PLACES];
static long sums[MOST_THREADS];
static int threads, rounds, is_fight;
static pthread_barrier_t begun, ended;

__attribute__((noinline, transaction_safe)) static void add(long *from, long amount)
{
    __transaction_atomic
    {
        for (int i = 0; i < PLACES; i++)
            from[i] += amount;
    }
}

__attribute__((noinline)) static void a_round(long *own, long *sum)
{
    __transaction_atomic
    {
        for (int i = 0; i < PLACES; i++)
            own[i]++;
    }
    __transaction_atomic
    {
        long total = 0;

        for (int i = 0; i < PLACES; i++)
            total += own[i];
        *sum = total;
    }
    __transaction_atomic
    {
        *sum = 0; // no other thread wants it, so only the nested ones are restarted
        add(own, 2);
        add(own, -2);
    }
    __transaction_atomic
    {
        own[1]++;
        __transaction_cancel;
    }
}

static void *work(void *argument)
{
    long number = (long)argument;

    for (;;) {
        pthread_barrier_wait(&begun);
        for (int i = 0; i < rounds; i++)
            a_round(places[is_fight ? 0 : number], &sums[number]);
        pthread_barrier_wait(&ended);
    }
    return 0;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    char line[16];

    threads = count > 2 ? atoi(arguments[1]) : 1;
    rounds = count > 2 ? atoi(arguments[2]) : 1;
    is_fight = count > 3;
    pthread_barrier_init(&begun, 0, threads + 1);
    pthread_barrier_init(&ended, 0, threads + 1);
    for (long i = 0; i < threads; i++)
        pthread_create(&thread, 0, work, (void *)i);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        pthread_barrier_wait(&begun);
        pthread_barrier_wait(&ended);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
