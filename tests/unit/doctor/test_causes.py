"""Tests of the true cause of each refusal, several of which look the same to the caller."""

import errno
from collections.abc import Mapping
from dataclasses import replace

import pytest

from gilscope.doctor.causes import cause_of, filtered_calls, missing_capabilities
from gilscope.doctor.machine import Capability, Machine, Place
from gilscope.doctor.syscall_trials import KILLED, Attempt

Attempts = Mapping[Attempt, int]

_ALL_BPF = (
    Attempt.MAP,
    Attempt.RING,
    Attempt.PROGRAM,
    Attempt.NAMESPACE_PROGRAM,
    Attempt.RAW_TRACEPOINT,
    Attempt.UPROBE,
)
_NEED_PERFMON = tuple(attempt for attempt in _ALL_BPF if attempt not in (Attempt.MAP, Attempt.RING))


def _without(machine: Machine, *capabilities: Capability) -> Machine:
    bits = sum(1 << capability.value for capability in capabilities)
    return replace(machine, capabilities=machine.capabilities & ~bits)


def _with(machine: Machine, *capabilities: Capability) -> Machine:
    bits = sum(1 << capability.value for capability in capabilities)
    return replace(machine, capabilities=machine.capabilities | bits)


def _failing(attempts: Attempts, number: int, *failed: Attempt) -> Attempts:
    return {**attempts, **dict.fromkeys(failed, number)}


def test_nothing_is_missing_on_a_good_machine(machine: Machine, attempts: Attempts) -> None:
    """
    CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE are enough.
    """
    assert () == missing_capabilities(machine, attempts)


@pytest.mark.parametrize("lacking", [Capability.CAP_BPF, Capability.CAP_PERFMON])
def test_a_missing_capability_is_the_cause(
    machine: Machine, attempts: Attempts, lacking: Capability
) -> None:
    """
    A refusal is attributed to the capability that is not there, and the remedy grants that one.
    """
    failed = _ALL_BPF if lacking is Capability.CAP_BPF else _NEED_PERFMON
    refused = _failing(attempts, errno.EPERM, *failed)

    cause = cause_of(Attempt.RAW_TRACEPOINT, _without(machine, lacking), refused)

    assert (
        f"the kernel answers EPERM (Operation not permitted): {lacking.name} is missing",
        f"sudo gilscope ...; in a systemd unit: AmbientCapabilities={lacking.name}",
        5,
    ) == (cause.text, cause.remedy, cause.exit_code)


def test_all_missing_capabilities_are_granted_at_once(machine: Machine, attempts: Attempts) -> None:
    """
    The remedy for one refusal names everything that is missing, in the order of the need.
    """
    bare = replace(machine, capabilities=0, place=Place.DOCKER)

    cause = cause_of(Attempt.MAP, bare, _failing(attempts, errno.EPERM, *_ALL_BPF))

    assert "docker run --cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE ..." == cause.remedy


def test_before_the_split_only_sys_admin_counts(machine: Machine, attempts: Attempts) -> None:
    """
    On a kernel before 5.8, which has no CAP_BPF, CAP_SYS_ADMIN is what is missing.
    """
    old = replace(machine, release="5.4.0", capabilities=1 << Capability.CAP_SYS_PTRACE.value)
    refused = _failing(attempts, errno.EPERM, *_ALL_BPF)

    assert ("CAP_SYS_ADMIN",) == missing_capabilities(old, refused)


def test_sys_admin_stands_for_bpf_and_perfmon(machine: Machine, attempts: Attempts) -> None:
    """
    With CAP_SYS_ADMIN neither of the two is asked for, but CAP_SYS_PTRACE is.
    """
    admin = replace(machine, capabilities=1 << Capability.CAP_SYS_ADMIN.value)

    assert ("CAP_SYS_PTRACE",) == missing_capabilities(admin, attempts)


def test_a_perf_uprobe_may_want_sys_admin(machine: Machine, attempts: Attempts) -> None:
    """
    A kernel that refuses only perf uprobes to CAP_PERFMON wants CAP_SYS_ADMIN for them.
    """
    patched = replace(machine, release="6.1.146")
    refused = _failing(attempts, errno.EACCES, Attempt.UPROBE)

    cause = cause_of(Attempt.UPROBE, patched, refused)

    assert ("CAP_SYS_ADMIN",) == missing_capabilities(patched, refused)
    assert (
        "the kernel answers EACCES (Permission denied): CAP_SYS_ADMIN is missing (since "
        "CVE-2025-38466 kernels before 6.10 do not leave uprobes to CAP_PERFMON)" == cause.text
    )


def test_what_was_done_for_real_needs_nothing(machine: Machine, attempts: Attempts) -> None:
    """
    A uprobe that was placed by the real probe outweighs an attempt that failed.
    """
    patched = replace(machine, release="6.1.146")
    refused = _failing(attempts, errno.EACCES, Attempt.UPROBE)

    assert () == missing_capabilities(patched, refused, can_place_uprobes=True)


def test_a_paranoid_distribution(machine: Machine, attempts: Attempts) -> None:
    """
    Where even a harmless perf event is refused and the switch is above 2, the switch is the cause.
    """
    paranoid = replace(machine, release="6.1.1", perf_event_paranoid=4)
    refused = _failing(attempts, errno.EACCES, Attempt.UPROBE, Attempt.PERF_EVENT)

    cause = cause_of(Attempt.UPROBE, paranoid, refused)

    assert (
        "the kernel answers EACCES (Permission denied): kernel.perf_event_paranoid is 4, which "
        "leaves perf events to CAP_SYS_ADMIN" == cause.text
    )
    assert cause.remedy.startswith("sysctl kernel.perf_event_paranoid=2, or sudo ")


def test_a_user_namespace(machine: Machine, attempts: Attempts) -> None:
    """
    All capabilities are there and do not count, because the agent's root is a mapped one.
    """
    rootless = replace(
        machine, capabilities=(1 << 41) - 1, in_first_user_namespace=False, place=Place.PODMAN
    )

    cause = cause_of(Attempt.MAP, rootless, _failing(attempts, errno.EPERM, *_ALL_BPF))

    assert (
        "the kernel answers EPERM (Operation not permitted): the agent is in a user namespace, "
        "whose capabilities do not count for BPF" == cause.text
    )
    assert "sudo podman run ... (rootful, without --userns)" == cause.remedy


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        (Place.DOCKER, "docker run --security-opt seccomp=unconfined ..."),
        (Place.PODMAN, "podman run --security-opt seccomp=unconfined ..."),
        (Place.KUBERNETES, "securityContext: {seccompProfile: {type: Unconfined}}"),
    ],
)
def test_a_filter_that_answers_as_the_kernel_does(
    machine: Machine, attempts: Attempts, place: Place, remedy: str
) -> None:
    """
    EPERM in spite of the capability comes from the seccomp filter; the runtime's remedy is given.
    """
    filtered = replace(machine, seccomp=2, place=place)
    refused = _failing(attempts, errno.EPERM, Attempt.BPF_REACHED, *_ALL_BPF)

    cause = cause_of(Attempt.MAP, filtered, refused)

    assert (
        "a seccomp filter on the agent answers EPERM (Operation not permitted) to bpf" == cause.text
    )
    assert (
        f"{remedy}; or a profile that also allows bpf: deploy/seccomp/gilscope.json" == cause.remedy
    )


def test_a_filter_that_kills(machine: Machine, attempts: Attempts) -> None:
    """
    A child that was killed by the attempt tells of the filter too.
    """
    filtered = replace(machine, seccomp=2)
    killed = _failing(attempts, KILLED, Attempt.BPF_REACHED, *_ALL_BPF)

    assert "a seccomp filter on the agent kills whoever calls bpf" == (
        cause_of(Attempt.MAP, filtered, killed).text
    )


def test_a_filter_behind_a_missing_capability(machine: Machine, attempts: Attempts) -> None:
    """
    Without CAP_BPF a kernel before 5.19 answers as a filter does, so the filter is not blamed.
    """
    filtered = replace(_without(machine, Capability.CAP_BPF), seccomp=2)
    refused = _failing(attempts, errno.EPERM, Attempt.BPF_REACHED, *_ALL_BPF)

    assert ((), False) == filtered_calls(filtered, refused)
    assert cause_of(Attempt.MAP, filtered, refused).text.endswith(": CAP_BPF is missing")


def test_a_filter_on_perf_events(machine: Machine, attempts: Attempts) -> None:
    """
    perf_event_open is judged where uprobes are perf events, and passed over where they are links.
    """
    refused = _failing(attempts, errno.EPERM, Attempt.PERF_REACHED)

    assert (("perf_event_open",), True) == filtered_calls(
        replace(machine, seccomp=2, release="6.9.1"), refused
    )
    assert ((), True) == filtered_calls(replace(machine, seccomp=2), refused)


def test_without_a_filter_none_is_blamed(machine: Machine, attempts: Attempts) -> None:
    """
    Whatever the kernel answered, an agent without a seccomp filter is not filtered.
    """
    refused = _failing(attempts, errno.EPERM, Attempt.BPF_REACHED, Attempt.PERF_REACHED)

    assert ((), True) == filtered_calls(machine, refused)


@pytest.mark.parametrize("attempt", [Attempt.MAP, Attempt.RING])
def test_locked_memory_on_an_old_kernel(
    machine: Machine, attempts: Attempts, attempt: Attempt
) -> None:
    """
    Before 5.11 a map that is refused in spite of the capability exceeds the limit of memory.
    """
    old = replace(machine, release="5.10.1", memlock_bytes=65536)

    cause = cause_of(attempt, old, _failing(attempts, errno.EPERM, attempt))

    assert cause.text.endswith(
        ": the limit of locked memory is 65536 bytes, and this kernel counts BPF maps"
    )
    assert "ulimit -l unlimited; in a systemd unit: LimitMEMLOCK=infinity" == cause.remedy


def test_a_security_module_is_the_last_explanation(machine: Machine, attempts: Attempts) -> None:
    """
    Where all that can be seen would allow it, the kernel's security modules are named.
    """
    locked = replace(machine, lockdown="confidentiality")

    cause = cause_of(Attempt.PROGRAM, locked, _failing(attempts, errno.EPERM, Attempt.PROGRAM))

    assert (
        "the kernel answers EPERM (Operation not permitted): its capabilities would do, so a "
        "security module of the kernel forbids it (lockdown,capability,apparmor, lockdown "
        "confidentiality)" == cause.text
    )


def test_a_kernel_without_the_call(machine: Machine, attempts: Attempts) -> None:
    """
    ENOSYS without a filter is a kernel that was built without BPF.
    """
    cause = cause_of(Attempt.MAP, machine, _failing(attempts, errno.ENOSYS, *_ALL_BPF))

    assert ("this kernel is built without bpf", 6) == (cause.text, cause.exit_code)


def test_any_other_answer_is_passed_on(machine: Machine, attempts: Attempts) -> None:
    """
    An errno that speaks neither of permission nor of absence is told as it is.
    """
    cause = cause_of(Attempt.MAP, machine, _failing(attempts, errno.ENOMEM, Attempt.MAP))

    assert "could not create a BPF map: ENOMEM (Cannot allocate memory)" == cause.text


def test_a_bit_more_never_hurts(machine: Machine, attempts: Attempts) -> None:
    """
    Root with everything lacks nothing.
    """
    root = _with(machine, *Capability)

    assert () == missing_capabilities(root, attempts)
