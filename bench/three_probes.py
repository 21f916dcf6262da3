"""The plainest BCC program that times the GIL: three probes by symbol, sums for each thread.

What one would write instead of using gilscope, and what gilscope's cost is compared with. It needs
an interpreter with symbols, misses the time inside drop_gil and wakes at every uncontended take.
Run as ``three_probes.py PID LIBRARY [TAKE DROP]``, with the functions that take and drop the GIL
where they have other names; says "Tracing" on stderr when the probes are in place, and prints the
sums as one line of JSON at SIGINT.
"""

import json
import signal
import sys

import bcc

__all__ = ["main"]

_PROGRAM = r"""
#include <uapi/linux/ptrace.h>

struct sums {
    u64 takes;
    u64 wait_ns;
    u64 hold_ns;
};

BPF_HASH(asked_ns, u32, u64);
BPF_HASH(taken_ns, u32, u64);
BPF_HASH(threads, u32, struct sums);

int on_ask(struct pt_regs *ctx)
{
    u32 tid = bpf_get_current_pid_tgid();
    u64 now = bpf_ktime_get_ns();

    asked_ns.update(&tid, &now);
    return 0;
}

int on_take(struct pt_regs *ctx)
{
    u32 tid = bpf_get_current_pid_tgid();
    u64 now = bpf_ktime_get_ns();
    u64 *asked = asked_ns.lookup(&tid);
    struct sums none = {}, *sums;

    if (!asked)
        return 0;
    sums = threads.lookup_or_try_init(&tid, &none);
    if (!sums)
        return 0;
    sums->takes++;
    sums->wait_ns += now - *asked;
    taken_ns.update(&tid, &now);
    return 0;
}

int on_drop(struct pt_regs *ctx)
{
    u32 tid = bpf_get_current_pid_tgid();
    u64 *taken = taken_ns.lookup(&tid);
    struct sums *sums = threads.lookup(&tid);

    if (taken && sums)
        sums->hold_ns += bpf_ktime_get_ns() - *taken;
    return 0;
}
"""


def main() -> None:
    """Trace until SIGINT and print the sums."""
    pid, library = int(sys.argv[1]), sys.argv[2]
    take, drop = sys.argv[3:5] or ("take_gil", "drop_gil")
    # Blocked from here on, so that it ends the wait below and nothing else.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    program = bcc.BPF(text=_PROGRAM)
    program.attach_uprobe(name=library, sym=take, fn_name="on_ask", pid=pid)
    program.attach_uretprobe(name=library, sym=take, fn_name="on_take", pid=pid)
    program.attach_uprobe(name=library, sym=drop, fn_name="on_drop", pid=pid)
    print("Tracing", file=sys.stderr, flush=True)
    signal.sigwait({signal.SIGINT})
    sums = list(program["threads"].values())
    print(
        json.dumps(
            {
                "takes": sum(each.takes for each in sums),
                "wait_ns": sum(each.wait_ns for each in sums),
                "hold_ns": sum(each.hold_ns for each in sums),
            }
        )
    )


if __name__ == "__main__":
    main()
