// SPDX-License-Identifier: Apache-2.0
//
// Keeps the probes of an agent, and takes them out when it falls silent.
//
// A probe costs its process something at each trap, so one must never stay because the agent cannot
// take it out: it may have been killed, stopped, frozen, or get no processor. So the agent holds no
// probe itself. It asks this process for them, which does nothing else, and which
//
//   - takes all of them out when the agent's end of the socket is closed, by whatever has ended it;
//   - takes those of windows out, which are the expensive ones, when it has not heard of the agent
//     for the time of a lease, and tells the kernel's table that the windows end there, so that
//     what they have counted stays right;
//   - lets a timer of the kernel kill it if it cannot even do that, because it is stopped or frozen
//     as well: then the kernel takes everything out.
//
// How descriptors are closed so that no breakpoint stays is the subject of leavers.c.
#define _GNU_SOURCE // signalfd and timer_create
#include "leavers.h"
#include "messages.h"
#include "uprobes.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    SOCKET = 3,          // where the agent has put its descriptor
    GRACE_MS = 1000,     // for taking windows out, before the kernel takes out everything
    PATIENCE_MS = 30000, // for one thing that is being done, likewise
    CLOSED_AT_ONCE = 8,  // processes that end with probes, when the agent has gone
    NO_REQUEST = 0,
};

struct group {
    uint32_t number;
    bool is_window;
    uint32_t slot;
    size_t count;
    int *fds;
};

static struct group *groups;
static size_t group_count, group_room;

static struct {
    uint32_t lease_ms, value_size, until_offset;
    int windows_fd;
} setup;

static struct reply *unsent;
static size_t unsent_count, unsent_room;

static int lease_fd, children_fd;
static struct timespec heard_at; // the agent, last
static timer_t last_resort;

static struct timespec after_ms(struct timespec time, uint32_t ms)
{
    time.tv_sec += ms / 1000;
    time.tv_nsec += ms % 1000 * 1000000L;
    if (time.tv_nsec >= 1000000000L) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000L;
    }
    return time;
}

static struct timespec now_monotonic(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now;
}

static bool has_windows(void)
{
    for (size_t i = 0; i < group_count; i++) {
        if (groups[i].is_window)
            return true;
    }
    return false;
}

// Wait for the agent's next sign of life; all of it is off while there is no window.
static void watch_for_silence(void)
{
    struct itimerspec lease = {0}, last = {0};

    if (has_windows()) {
        lease.it_value = after_ms(heard_at, setup.lease_ms);
        last.it_value = after_ms(lease.it_value, GRACE_MS);
    }
    timerfd_settime(lease_fd, TFD_TIMER_ABSTIME, &lease, NULL);
    timer_settime(last_resort, TIMER_ABSTIME, &last, NULL);
}

// To be killed in the middle of something leaves breakpoints behind: only where it never ends.
static void begin_work(void)
{
    struct itimerspec last = {.it_value = after_ms(now_monotonic(), PATIENCE_MS)};

    timer_settime(last_resort, TIMER_ABSTIME, &last, NULL);
}

static bool is_sent(const struct reply *reply)
{
    return send(SOCKET, reply, sizeof(*reply), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
           (errno != EAGAIN && errno != EWOULDBLOCK);
}

// Never waits: the agent may ask for many things before it reads, and it may have been stopped.
static void tell(uint32_t kind, uint32_t number, int error)
{
    struct reply reply = {.kind = kind, .number = number, .error = error};

    if (!unsent_count && is_sent(&reply))
        return;
    if (unsent_count == unsent_room) {
        size_t room = unsent_room ? 2 * unsent_room : 64;
        struct reply *more = realloc(unsent, room * sizeof(*more));

        if (!more)
            return;
        unsent = more;
        unsent_room = room;
    }
    unsent[unsent_count++] = reply;
}

static void tell_unsent(void)
{
    size_t sent = 0;

    while (sent < unsent_count && is_sent(&unsent[sent]))
        sent++;
    unsent_count -= sent;
    memmove(unsent, unsent + sent, unsent_count * sizeof(*unsent));
}

static void take_out(struct group *group, uint32_t number)
{
    // A perf event takes as long to close as a link to all places does.
    for (size_t i = 0; group->count > 1 && i < group->count; i++)
        close_by_leaving(&group->fds[i], 1, number);
    if (group->count == 1)
        close_by_leaving(group->fds, 1, number);
    free(group->fds);
    *group = groups[--group_count];
}

static bool add_group(const struct request *request, int *fds, size_t count)
{
    if (group_count == group_room) {
        size_t room = group_room ? 2 * group_room : 64;
        struct group *more = realloc(groups, room * sizeof(*more));

        if (!more)
            return false;
        groups = more;
        group_room = room;
    }
    groups[group_count++] = (struct group){
        .number = request->number,
        .is_window = request->open.is_window,
        .slot = request->open.cookie,
        .count = count,
        .fds = fds,
    };
    return true;
}

static void open_group(const struct request *request, int program_fd, int file_fd)
{
    struct place place = {
        .program_fd = program_fd,
        .file_fd = file_fd,
        .pid = request->open.pid,
        .perf_type = request->open.perf_type,
        .cookie = request->open.cookie,
        .offsets = request->items,
        .count = request->count,
    };
    int *fds = malloc(request->count * sizeof(*fds));
    int count = fds ? open_uprobes(&place, fds) : -1;
    int error = count < 0 ? fds ? errno : ENOMEM : 0;

    if (!error && add_group(request, fds, count)) {
        tell(REPLY_OPENED, request->number, 0);
        return;
    }
    close_by_leaving(fds, error ? -count - 1 : count, NO_REQUEST);
    free(fds);
    tell(REPLY_OPENED, request->number, error ? error : ENOMEM);
}

static void close_groups(const struct request *request)
{
    for (uint64_t i = 0; i < request->count; i++) {
        for (size_t k = 0; k < group_count; k++) {
            if (groups[k].number == request->items[i]) {
                take_out(&groups[k], request->number);
                break;
            }
        }
    }
    if (!are_leaving(request->number))
        tell(REPLY_CLOSED, request->number, 0);
}

static void close_windows(void)
{
    struct timespec now = now_monotonic();
    uint64_t now_ns = now.tv_sec * 1000000000LL + now.tv_nsec;

    tell(REPLY_LAPSED, NO_REQUEST, 0);
    for (size_t i = 0; i < group_count; i++) {
        if (groups[i].is_window)
            end_window(setup.windows_fd, groups[i].slot, setup.value_size, setup.until_offset,
                       now_ns);
    }
    for (size_t i = 0; i < group_count;) {
        if (groups[i].is_window)
            take_out(&groups[i], NO_REQUEST);
        else
            i++;
    }
}

// The most expensive first, then the others in as many processes as end side by side.
static void close_everything(void)
{
    size_t count = 0, room = 0;

    close_windows();
    for (size_t i = 0; i < group_count; i++)
        room += groups[i].count;
    int *fds = malloc(room * sizeof(*fds) + 1);

    for (size_t i = 0; fds && i < group_count; i++) {
        memcpy(fds + count, groups[i].fds, groups[i].count * sizeof(*fds));
        count += groups[i].count;
    }
    size_t part = count / CLOSED_AT_ONCE + 1;

    for (size_t i = 0; i < count; i += part)
        close_by_leaving(fds + i, count - i < part ? count - i : part, NO_REQUEST);
}

static void take_descriptors(struct msghdr *message, int *fds, size_t room)
{
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        memcpy(fds, CMSG_DATA(part), (count < room ? count : room) * sizeof(int));
    }
}

static void carry_out(const struct request *request, int *fds)
{
    switch (request->kind) {
    case REQUEST_SETUP:
        setup.lease_ms = request->setup.lease_ms;
        setup.value_size = request->setup.value_size;
        setup.until_offset = request->setup.until_offset;
        setup.windows_fd = fds[0];
        fds[0] = -1;
        break;
    case REQUEST_OPEN:
        open_group(request, fds[0], fds[1]);
        break;
    case REQUEST_CLOSE:
        close_groups(request);
        break;
    case REQUEST_BEAT:
        break;
    }
}

// Returns whether the agent is still there.
static bool answer(void)
{
    static union {
        struct request request;
        char room[sizeof(struct request) + MAX_OFFSETS * sizeof(uint64_t)];
    } held;
    char control[CMSG_SPACE(2 * sizeof(int))];
    int fds[2] = {-1, -1};
    struct iovec content = {&held, sizeof(held)};
    struct msghdr message = {
        .msg_iov = &content,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    ssize_t size = recvmsg(SOCKET, &message, MSG_CMSG_CLOEXEC);

    if (size < 0 && errno == EINTR)
        return true;
    if (size <= 0)
        return false;
    take_descriptors(&message, fds, 2);
    if ((size_t)size >= sizeof(struct request) && held.request.count <= MAX_OFFSETS &&
        (size_t)size == sizeof(struct request) + held.request.count * sizeof(uint64_t))
        carry_out(&held.request, fds);
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    return true;
}

static void reap(void)
{
    struct signalfd_siginfo said;
    uint32_t number;

    while (read(children_fd, &said, sizeof(said)) > 0)
        continue;
    while (leaver_has_gone(&number)) {
        if (number != NO_REQUEST && !are_leaving(number))
            tell(REPLY_CLOSED, number, 0);
    }
}

// A timer takes one of the signals that may wait: the limit of these (RLIMIT_SIGPENDING) is hit
// here, and needs a right of its own to be raised.
static int with_timers(void)
{
    struct sigevent kill = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};

    lease_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (lease_fd < 0 || timer_create(CLOCK_MONOTONIC, &kill, &last_resort) < 0)
        return errno;
    return 0;
}

static void prepare(void)
{
    // What is meant for the agent, by a terminal or a service manager, is not meant for its keeper:
    // it goes when the agent has gone.
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGPIPE};
    sigset_t children;
    int error;

    close_from(SOCKET + 1);
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    prctl(PR_SET_NAME, "gilscope-keeper");
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    children_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    error = children_fd < 0 ? errno : with_timers();
    tell(REPLY_READY, 0, error);
    if (error)
        _exit(1);
    (void)!chdir("/");
}

int main(void)
{
    prepare();
    struct pollfd waited[] = {
        {.fd = SOCKET, .events = POLLIN},
        {.fd = children_fd, .events = POLLIN},
        {.fd = lease_fd, .events = POLLIN},
    };

    for (;;) {
        waited[0].events = unsent_count ? POLLIN | POLLOUT : POLLIN;
        if (poll(waited, 3, -1) < 0 && errno != EINTR)
            break;
        begin_work();
        if (waited[1].revents)
            reap();
        if (waited[0].revents & POLLOUT)
            tell_unsent();
        if (waited[0].revents & ~POLLOUT) {
            if (!answer())
                break;
            heard_at = now_monotonic();
        } else if (waited[2].revents) {
            close_windows();
        }
        watch_for_silence();
    }
    begin_work();
    close_everything();
    return 0;
}
