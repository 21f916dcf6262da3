// SPDX-License-Identifier: Apache-2.0
//
// The system calls that put probes into processes. Layouts are those of <linux/bpf.h> and
// <linux/perf_event.h>, written out here: headers of an old system do not have the newest members.
#define _GNU_SOURCE // syscall
#include "uprobes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    BPF_MAP_LOOKUP = 1,
    BPF_MAP_UPDATE = 2,
    BPF_LINK_CREATE = 28,
    BPF_TRACE_UPROBE_MULTI = 48,
    PERF_EVENT_IOC_ENABLE = 0x2400,
    PERF_EVENT_IOC_SET_BPF = 0x40042408,
    PERF_FLAG_FD_CLOEXEC = 8,
    MAX_VALUE_SIZE = 256,
};

// union bpf_attr, link_create with uprobe_multi.
struct link_attributes {
    uint32_t program_fd, target_fd, attach_type, flags;
    uint64_t path, offsets, reference_counters, cookies;
    uint32_t count, probe_flags, pid, padding;
};

// struct perf_event_attr up to config2, and what is left of its size.
struct event_attributes {
    uint32_t type, size;
    uint64_t config, sample_period, sample_type, read_format, flags;
    uint32_t wakeup_events, bp_type;
    uint64_t path, offset;
    uint8_t rest[112 - 72];
};

// union bpf_attr, the element commands.
struct element_attributes {
    uint32_t map_fd, padding;
    uint64_t key, value, flags;
};

static int open_link(const struct place *place, const char *path)
{
    uint64_t cookies[place->count];

    for (uint64_t i = 0; i < place->count; i++)
        cookies[i] = place->cookie;
    struct link_attributes attributes = {
        .program_fd = place->program_fd,
        .attach_type = BPF_TRACE_UPROBE_MULTI,
        .path = (uintptr_t)path,
        .offsets = (uintptr_t)place->offsets,
        .cookies = (uintptr_t)cookies,
        .count = place->count,
        .pid = place->pid,
    };

    return syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));
}

static int open_event(const struct place *place, const char *path, uint64_t offset)
{
    struct event_attributes attributes = {
        .type = place->perf_type,
        .size = sizeof(attributes),
        .path = (uintptr_t)path,
        .offset = offset,
    };
    // An event of all processes has to name a processor; its program runs on each all the same.
    int pid = place->pid ? place->pid : -1, cpu = place->pid ? -1 : 0;
    int fd = syscall(SYS_perf_event_open, &attributes, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

    if (fd < 0)
        return -1;
    if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, place->program_fd) < 0 ||
        ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int open_uprobes(const struct place *place, int *fds)
{
    char path[sizeof("/proc/self/fd/-2147483648")];

    // Leads to the very file that the agent has checked, whatever its path means by now.
    snprintf(path, sizeof(path), "/proc/self/fd/%d", place->file_fd);
    if (place->perf_type < 0) {
        fds[0] = open_link(place, path);
        return fds[0] < 0 ? -1 : 1;
    }
    for (uint64_t i = 0; i < place->count; i++) {
        fds[i] = open_event(place, path, place->offsets[i]);
        if (fds[i] < 0)
            return -(int)i - 1;
    }
    return place->count;
}

void end_window(int map_fd, uint32_t slot, uint32_t value_size, uint32_t until_offset,
                uint64_t now_ns)
{
    uint64_t value[MAX_VALUE_SIZE / sizeof(uint64_t)], until_ns;
    char *until = (char *)value + until_offset;
    struct element_attributes attributes = {
        .map_fd = map_fd,
        .key = (uintptr_t)&slot,
        .value = (uintptr_t)value,
    };

    if (value_size > sizeof(value) || until_offset + sizeof(until_ns) > value_size)
        return;
    if (syscall(SYS_bpf, BPF_MAP_LOOKUP, &attributes, sizeof(attributes)) < 0)
        return;
    memcpy(&until_ns, until, sizeof(until_ns));
    if (until_ns <= now_ns)
        return;
    memcpy(until, &now_ns, sizeof(now_ns));
    syscall(SYS_bpf, BPF_MAP_UPDATE, &attributes, sizeof(attributes));
}
