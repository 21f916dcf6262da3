#define _GNU_SOURCE

#include "remote.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

// Beyond the memory of any program, and a legal offset of a file.
#define NEVER_MAPPED 0x7ffffffffffff000

static ssize_t call(pid_t tid, uint64_t address, void *content, size_t size)
{
    struct iovec local = {content, size};
    struct iovec there = {(void *)(uintptr_t)address, size};

    return process_vm_readv(tid, &local, 1, &there, 1, 0);
}

// Whether a filter (seccomp) leaves nothing but the old way.
static bool is_forbidden(void)
{
    static _Atomic int known; // 0: not yet, 1: it is allowed, 2: it is not
    char from = 1, to;

    if (!known)
        known = call(getpid(), (uintptr_t)&from, &to, 1) == 1 ? 1 : 2;
    return known == 2;
}

static bool is_there(int memory)
{
    char content;

    // The end of the file: nobody has this address space any more. An error: it has such a hole.
    return pread(memory, &content, 1, NEVER_MAPPED) < 0;
}

// Reads by whichever thread has not ended.
static ssize_t call_any(struct remote *remote, uint64_t address, void *content, size_t size)
{
    struct dirent *entry;
    ssize_t count = -1;
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/task", (int)remote->pid);
    DIR *threads = opendir(path);
    if (!threads) {
        errno = ESRCH;
        return -1;
    }
    errno = ESRCH;
    while (count < 0 && errno == ESRCH && (entry = readdir(threads))) {
        pid_t tid = atoi(entry->d_name);
        if (tid <= 0 || tid == remote->tid)
            continue;
        count = call(tid, address, content, size);
        if (count >= 0 || errno != ESRCH)
            remote->tid = tid;
    }
    int reason = errno;
    closedir(threads);
    errno = reason;
    return count;
}

ssize_t remote_read(struct remote *remote, uint64_t address, void *content, size_t size)
{
    ssize_t count;

    if (remote->memory < 0) {
        errno = EBADF;
        return -1;
    }
    if (is_forbidden()) {
        count = pread(remote->memory, content, size, (off_t)address);
        if (!count)
            errno = ESRCH;
        else if (count < 0 ? errno == EIO : (size_t)count < size)
            errno = EFAULT;
        return count == (ssize_t)size ? count : -1;
    }
    count = call(remote->tid, address, content, size);
    if (count < 0 && errno == ESRCH && is_there(remote->memory))
        count = call_any(remote, address, content, size);
    int reason = count < 0 ? errno : EFAULT;
    if (!is_there(remote->memory))
        reason = ESRCH;
    else if (count == (ssize_t)size)
        return count;
    errno = reason;
    return -1;
}
