/* What the scheduler did to the calling thread, and a thread of pure Python that watches it.
 *
 * Known answer: crunch_clock.wait_ns, the time that the thread waited for the GIL.
 */
#define _GNU_SOURCE
#include "gilclock.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Longer than a turn of the loop or an interrupt, shorter than falling asleep and waking up. */
#define JUMP_NS 4000

struct crunch_clock {
    uint64_t until_ns;
    uint64_t waits, wait_ns, longest_ns, long_waits;
    uint64_t disturbed_waits, disturbed_ns;
    uint64_t other_jumps, other_ns;
    uint64_t last_ns;
    struct scheduling last;
};

static uint64_t read_run_delay(void)
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

void read_scheduling(struct scheduling *scheduling)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    scheduling->voluntary = (uint64_t)usage.ru_nvcsw;
    scheduling->involuntary = (uint64_t)usage.ru_nivcsw;
    scheduling->run_delay_ns = read_run_delay();
}

static void add_jump(struct crunch_clock *clock, uint64_t jump_ns, const struct scheduling *now)
{
    if (now->voluntary == clock->last.voluntary) {
        clock->other_jumps++;
        clock->other_ns += jump_ns;
        return;
    }
    clock->waits++;
    clock->wait_ns += jump_ns;
    clock->long_waits += jump_ns >= LONG_NS;
    if (jump_ns > clock->longest_ns)
        clock->longest_ns = jump_ns;
    if (now->involuntary != clock->last.involuntary) {
        clock->disturbed_waits++;
        clock->disturbed_ns += now->run_delay_ns - clock->last.run_delay_ns;
    }
}

/* Called by the thread over and over, with the GIL; returns 0 when its time is up.
 *
 * The thread can lose the GIL only between two calls. A jump of the clock there, across which the
 * kernel counts a voluntary switch, is a wait: the thread slept, and in nothing but a wait for the
 * GIL. It lasts from being made to yield to holding the GIL again.
 */
int crunch_look(struct crunch_clock *clock)
{
    uint64_t now = now_ns();
    uint64_t jump_ns = now - clock->last_ns;
    if (jump_ns <= JUMP_NS) {
        clock->last_ns = now;
        return now < clock->until_ns;
    }
    struct scheduling scheduling;
    read_scheduling(&scheduling);
    if (clock->last_ns != 0)
        add_jump(clock, jump_ns, &scheduling);
    clock->last = scheduling;
    clock->last_ns = now_ns();
    return now < clock->until_ns;
}
