"""A machine on which everything works, for tests that take something away from it."""

from collections.abc import Mapping

import pytest

from gilscope.doctor.machine import Capability, Machine, Place
from gilscope.doctor.syscall_trials import Attempt


def _bits(*capabilities: Capability) -> int:
    return sum(1 << capability.value for capability in capabilities)


@pytest.fixture
def machine() -> Machine:
    """Return a host with a recent kernel, and an agent with just the capabilities that it needs."""
    return Machine(
        release="6.12.1-test",
        architecture="x86_64",
        euid=1000,
        capabilities=_bits(Capability.CAP_BPF, Capability.CAP_PERFMON, Capability.CAP_SYS_PTRACE),
        seccomp=0,
        in_first_user_namespace=True,
        in_first_pid_namespace=True,
        sees_other_processes=True,
        is_init=False,
        proc_is_own=True,
        uprobe_type="8",
        perf_event_paranoid=2,
        unprivileged_bpf_disabled=2,
        ptrace_scope=0,
        security_modules="lockdown,capability,apparmor",
        lockdown="none",
        memlock_bytes=8 << 20,
        tracefs=None,
        place=Place.HOST,
        distributions=("debian",),
    )


@pytest.fixture
def attempts() -> Mapping[Attempt, int]:
    """Return the errno of every attempt on that machine."""
    reached = {Attempt.BPF_REACHED: 22, Attempt.PERF_REACHED: 22}
    return {attempt: reached.get(attempt, 0) for attempt in Attempt}
