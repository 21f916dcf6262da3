// SPDX-License-Identifier: Apache-2.0
//
// Closes descriptors that hold probes, in processes that end for it.
//
// To take a probe out, the kernel writes to the memory of each process that has it, and gives up
// where the one who closes has been sent SIGKILL meanwhile: then the breakpoint stays for good, and
// the kernel only logs "failed to unregister, leaking uprobe". A process that is ending gets no
// signal any more, so what its end closes is closed. It also takes its time, up to 0.2 s a link,
// without anybody waiting for it.
#define _GNU_SOURCE // syscall
#include "leavers.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct leaver {
    pid_t pid;
    uint32_t number;
};

static struct leaver *leavers;
static size_t leaver_count, leaver_room;

static int in_order(const void *one, const void *other)
{
    int a = *(const int *)one, b = *(const int *)other;

    return (a > b) - (a < b);
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

// Before Linux 5.9 there is no such call: then they stay open for as long as this process does.
static void close_from_to(unsigned int first, unsigned int last)
{
    enum { SYS_CLOSE_RANGE = 436 };

    if (first <= last)
        syscall(SYS_CLOSE_RANGE, first, last, 0);
}

void close_from(unsigned int first)
{
    close_from_to(first, ~0U);
}

// Close every descriptor but those in *fds*, which are in ascending order.
static void close_others(const int *fds, size_t count)
{
    unsigned int next = 0;

    for (size_t i = 0; i < count; next = fds[i++] + 1) {
        if (fds[i])
            close_from_to(next, fds[i] - 1);
    }
    close_from(next);
}

static bool remember(pid_t pid, uint32_t number)
{
    if (leaver_count == leaver_room) {
        size_t room = leaver_room ? 2 * leaver_room : 16;
        struct leaver *more = realloc(leavers, room * sizeof(*more));

        if (!more)
            return false;
        leavers = more;
        leaver_room = room;
    }
    leavers[leaver_count++] = (struct leaver){pid, number};
    return true;
}

static void leave_with(int *fds, size_t count, int ready, int go)
{
    char byte = 0;
    int *kept = malloc((count + 2) * sizeof(*kept));

    if (kept) {
        for (size_t i = 0; i < count; i++)
            kept[i] = fds[i];
        kept[count] = ready;
        kept[count + 1] = go;
        qsort(kept, count + 2, sizeof(*kept), in_order);
        // What else it has from its parent must not outlive the parent's own closing of it.
        close_others(kept, count + 2);
    }
    if (write(ready, &byte, 1) == 1)
        (void)!read(go, &byte, 1); // comes to its end when the parent has closed all of *fds*
    _exit(0);
}

void close_by_leaving(const int *fds, size_t count, uint32_t number)
{
    int ready[2] = {-1, -1}, go[2] = {-1, -1};
    int *own = malloc(count * sizeof(*own));
    char byte;
    pid_t pid = -1;

    if (!count || !own)
        goto out;
    for (size_t i = 0; i < count; i++)
        own[i] = fds[i];
    if (pipe(ready) < 0 || pipe(go) < 0 || !remember(0, number))
        goto out;
    pid = fork();
    if (pid == 0) {
        close(ready[0]);
        close(go[1]);
        leave_with(own, count, ready[1], go[0]);
    }
    if (pid < 0) {
        leaver_count--;
        goto out;
    }
    leavers[leaver_count - 1].pid = pid;
    close(ready[1]);
    ready[1] = -1;
    (void)!read(ready[0], &byte, 1);
out:
    // The last ones to hold the descriptors are those in the process that ends, if there is one.
    close_all(fds, count);
    for (int i = 0; i < 2; i++) {
        if (ready[i] >= 0)
            close(ready[i]);
        if (go[i] >= 0)
            close(go[i]);
    }
    free(own);
}

bool leaver_has_gone(uint32_t *number)
{
    pid_t pid = waitpid(-1, NULL, WNOHANG);

    for (size_t i = 0; pid > 0 && i < leaver_count; i++) {
        if (leavers[i].pid != pid)
            continue;
        *number = leavers[i].number;
        leavers[i] = leavers[--leaver_count];
        return true;
    }
    return false;
}

bool are_leaving(uint32_t number)
{
    for (size_t i = 0; i < leaver_count; i++) {
        if (leavers[i].number == number)
            return true;
    }
    return false;
}
