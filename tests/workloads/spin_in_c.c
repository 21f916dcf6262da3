// A call that computes in C code for a while, and whoever makes it keeps the GIL meanwhile.

#include <time.h>

static long now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

// Adds up numbers for *ns*; the clock is asked now and then, so that the time is spent in here.
long spin_with_the_gil(long ns)
{
    volatile long sum = 0;

    for (long until = now_ns() + ns; now_ns() < until;)
        for (int i = 0; i < 100000; i++)
            sum += i;
    return sum;
}
