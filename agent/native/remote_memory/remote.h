// Reads the memory of another process in a way that harms nobody when an answer never comes.
//
// A page may come from a program (FUSE) or over a network, and who reads it waits. A read of
// /proc/PID/mem keeps the address space locked meanwhile: the process cannot map memory any more,
// and as a probe that is placed waits for it too, no process of the machine can fork.
// process_vm_readv releases the lock while the page is on its way. It goes by a number, though,
// that may be another process' by now, so the descriptor of /proc/PID/mem tells afterwards whether
// the address space is still the one that was opened.
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct remote {
    // As this process sees it.
    pid_t pid;
    // One of its threads that has not ended: the kernel finds memory only through such a one.
    pid_t tid;
    // Of /proc/PID/mem.
    int memory;
};

// Returns `size` with that many bytes at `address` in `content`, else -1 with errno: ESRCH when the
// address space that was opened has gone, EFAULT where not all of it is mapped.
ssize_t remote_read(struct remote *remote, uint64_t address, void *content, size_t size);
