// Requests as transactions of GCC's libitm, in so many threads: primes, or paths on a map.
//
// stm_scaling WORK CLOCK SHARED THREADS MILLISECONDS: WORK is `primes` or `astar`. CLOCK 1 asks for
// the time within each transaction, which cannot be rolled back; with SHARED 1 all threads count in
// the same place, or play on the same map. At the first line it begins; says how many transactions
// were committed, and whether what they wrote is what they must have written.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 16
#define LIMIT 2000    // of the primes of one request
#define PRIMES 303    // up to there
#define SIZE 24       // of the map
#define WALLS_EVERY 5 // turns
#define APART 120     // no two threads write to the same cache line

static struct {
    long count;
    char apart[APART];
} counters[MOST_THREADS];

static struct {
    long commits, toggles, steps;
    unsigned chance;
    char apart[APART];
} own[MOST_THREADS];

static long maps[MOST_THREADS][SIZE * SIZE];
static int is_astar, asks_time, is_shared, threads;
static double limit_s;
static time_t last_time;

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

__attribute__((transaction_pure, noinline)) static int primes(void)
{
    int found = 0;

    for (int number = 2; number <= LIMIT; number++) {
        int divisor = 2;

        while (divisor < number && number % divisor)
            divisor++;
        found += divisor == number;
    }
    return found;
}

__attribute__((noinline)) static void count_primes(long number)
{
    long *count = &counters[is_shared ? 0 : number].count;
    int found;

    __transaction_relaxed
    {
        if (asks_time)
            last_time = time(0);
        (*count)++;
        found = primes();
    }
    if (found != PRIMES)
        abort();
}

// Breadth first from start to goal; reads the map as it goes, and nothing else that is shared.
__attribute__((transaction_safe, noinline)) static int path(const long *map, int start, int goal)
{
    static const int down[] = {0, 1, 0, -1}, right[] = {1, 0, -1, 0};
    short steps[SIZE * SIZE], queue[SIZE * SIZE];
    int first = 0, last = 0;

    for (int i = 0; i < SIZE * SIZE; i++)
        steps[i] = -1;
    steps[start] = 0;
    queue[last++] = start;
    while (first < last) {
        int place = queue[first++];

        if (place == goal)
            return steps[place];
        for (int i = 0; i < 4; i++) {
            int row = place / SIZE + down[i], column = place % SIZE + right[i];
            int there = row * SIZE + column;

            if (row < 0 || row >= SIZE || column < 0 || column >= SIZE || steps[there] >= 0)
                continue;
            if (map[there])
                continue;
            steps[there] = steps[place] + 1;
            queue[last++] = there;
        }
    }
    return -1;
}

__attribute__((noinline)) static void play(long number)
{
    long *map = maps[is_shared ? 0 : number];
    int place = rand_r(&own[number].chance) % (SIZE * SIZE);
    int other = rand_r(&own[number].chance) % (SIZE * SIZE), steps;

    if (own[number].commits % WALLS_EVERY) {
        __transaction_atomic
        {
            steps = path(map, place, other);
        }
    } else {
        __transaction_atomic
        {
            map[place] ^= 1;
            steps = path(map, other, place);
        }
        own[number].toggles++;
    }
    own[number].steps += steps; // so that no path is left out
}

static void *work(void *argument)
{
    long number = (long)argument;
    double end_s = now_s() + limit_s;

    own[number].chance = number;
    do {
        if (is_astar)
            play(number);
        else
            count_primes(number);
        own[number].commits++;
    } while (now_s() < end_s);
    return 0;
}

// Each wall that was toggled is one more or one less: both numbers are odd, or neither is.
static int is_right(long commits)
{
    long counted = 0, walls = 0, toggles = 0;

    for (int i = 0; i < threads; i++) {
        counted += counters[i].count;
        toggles += own[i].toggles;
        for (int place = 0; place < SIZE * SIZE; place++)
            walls += maps[i][place];
    }
    return is_astar ? (walls ^ toggles) % 2 == 0 : counted == commits;
}

int main(int count, char **arguments)
{
    pthread_t ids[MOST_THREADS];
    double began_s, took_s;
    long commits = 0;

    if (count != 6)
        return 2;
    is_astar = !strcmp(arguments[1], "astar");
    asks_time = atoi(arguments[2]);
    is_shared = atoi(arguments[3]);
    threads = atoi(arguments[4]);
    limit_s = atoi(arguments[5]) / 1e3;
    printf("{\"pid\": %d}\n", getpid());
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    began_s = now_s();
    for (long i = 0; i < threads; i++)
        pthread_create(&ids[i], 0, work, (void *)i);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], 0);
    took_s = now_s() - began_s;
    for (int i = 0; i < threads; i++)
        commits += own[i].commits;
    printf("{\"commits\": %ld, \"took_s\": %.6f, \"commits_per_s\": %.1f, \"is_right\": %s}\n",
           commits, took_s, commits / took_s, is_right(commits) ? "true" : "false");
    fflush(stdout);
    getchar();
    return 0;
}
