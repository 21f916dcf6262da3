// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The kernel as all programs see it: how memory of a process is read, what time it is, and who is
// running.

#include <uapi/linux/bpf.h>
#include <uapi/linux/ptrace.h>
#include <uapi/linux/sched.h>

// The kernel's helpers bpf_probe_read_user and bpf_probe_read_user_str, both of Linux 5.5. Where
// they are called by these names, BCC 0.26 looks through all symbols of the kernel to see whether
// they exist: that took 0.6 of the 1.6 s in which it compiled the programs on the GIL.
static int (*read_user)(void *to, u32 size, const void *from) = (void *)BPF_FUNC_probe_read_user;
static int (*read_user_str)(void *to, u32 size,
                            const void *from) = (void *)BPF_FUNC_probe_read_user_str;

// CLOCK_MONOTONIC as the agent reads it: a time namespace may shift that.
static __always_inline u64 now_ns(void)
{
    return bpf_ktime_get_ns() + PARAMETER(CLOCK_OFFSET_NS);
}

// The number that the thread which runs this has in a pid namespace, whose inode is 0 if that is
// the agent's own, where it is *tid*. 0: it has none there.
static __always_inline u32 tid_in_namespace(u64 device, u64 inode, u32 tid)
{
    struct bpf_pidns_info ids = {};

    if (!inode)
        return tid;
    if (bpf_get_ns_current_pid_tgid(device, inode, &ids, sizeof(ids)))
        return 0;
    return ids.pid;
}

// Process and thread id as the agent sees them: tgid in the upper half, tid in the lower.
static __always_inline u64 current_ids(void)
{
    struct bpf_pidns_info ids = {};

    if (!PARAMETER(PID_NAMESPACE_INODE))
        return bpf_get_current_pid_tgid(); // the agent is in the first pid namespace, the kernel's
    if (bpf_get_ns_current_pid_tgid(PARAMETER(PID_NAMESPACE_DEVICE), PARAMETER(PID_NAMESPACE_INODE),
                                    &ids, sizeof(ids)))
        return 0; // a process of another pid namespace, which the agent cannot name
    return (u64)ids.tgid << 32 | ids.pid;
}
