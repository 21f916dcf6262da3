"""Tests of the judgement on a process: is it there, and may it be inspected."""

import os
from dataclasses import replace

import pytest

from gilscope.doctor.access import Standing, judge_reading, judge_standing, read_standing
from gilscope.doctor.machine import Capability, Machine, Place
from gilscope.model.diagnosis import Status

_NOBODY_HAS = 4_000_000_000


@pytest.fixture
def standing() -> Standing:
    """Return a process like any other."""
    return Standing(
        tgid=47,
        state="S",
        threads=3,
        uid=_NOBODY_HAS,
        seccomp=0,
        maps_files=True,
        pid_inside=47,
        other_namespaces=(),
    )


def test_a_process_like_any_other(machine: Machine, standing: Standing) -> None:
    """
    Its name, threads and user are told, and that nothing sets it apart.
    """
    checks = judge_standing(47, standing, "app.py", machine)

    assert [
        ("process", Status.OK, f"app.py, 3 threads, of user {_NOBODY_HAS}"),
        ("namespaces", Status.OK, "the agent's own"),
        ("target_seccomp", Status.OK, "no filter on the process"),
    ] == [(check.name, check.status, check.found) for check in checks]


def test_a_process_in_a_container(machine: Machine, standing: Standing) -> None:
    """
    Namespaces and a filter of its own are told of, and do no harm.
    """
    contained = replace(standing, other_namespaces=("pid", "mount"), pid_inside=1, seccomp=2)

    _, namespaces, seccomp = judge_standing(47, contained, "app.py", machine)

    assert (
        Status.OK,
        "own pid, mount namespaces (it is pid 1 in there), which is fine: a container",
    ) == (namespaces.status, namespaces.found)
    assert Status.OK is seccomp.status
    assert seccomp.found.startswith("a filter on the process, which is fine")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"tgid": 46}, "47 is a thread of process 46"),
        ({"state": "Z"}, "process 47 has ended; its parent has not noticed yet"),
        ({"maps_files": False}, "process 47 is a thread of the kernel"),
    ],
)
def test_what_is_no_process(
    machine: Machine, standing: Standing, change: dict[str, int | str], found: str
) -> None:
    """
    Threads, the dead and the kernel's own are told apart, all under the code for "not Python".
    """
    facts = {name: getattr(standing, name) for name in Standing.__slots__}

    (check,) = judge_standing(47, Standing(**{**facts, **change}), "app.py", machine)

    assert (Status.MISSING, found, 3) == (check.status, check.found, check.exit_code)


def test_the_process_of_a_thread_is_named(machine: Machine, standing: Standing) -> None:
    """
    The remedy for a thread's id is the command for its process.
    """
    (check,) = judge_standing(47, replace(standing, tgid=46), "app.py", machine)

    assert "gilscope doctor -p 46" == check.remedy


def test_a_pid_of_another_namespace(machine: Machine) -> None:
    """
    In a container the reader learns that pids differ from the host's.
    """
    contained = replace(machine, in_first_pid_namespace=False, place=Place.KUBERNETES)

    (check,) = judge_standing(47, None, "", contained)

    assert (
        "there is no process 47 in the agent's pid namespace, where pids are others than on the "
        "host" == check.found
    )
    assert check.remedy.startswith("sidecar: shareProcessNamespace: true")


_OTHER = f"is of user {_NOBODY_HAS}"


@pytest.mark.parametrize(
    ("owner", "held", "reason"),
    [
        (
            1000,
            0,
            (
                "CAP_SYS_PTRACE is missing, and the process has capabilities that gilscope has "
                "not, or forbids it"
            ),
        ),
        (
            _NOBODY_HAS,
            1 << Capability.CAP_DAC_READ_SEARCH.value,
            f"CAP_SYS_PTRACE is missing, and the process {_OTHER}",
        ),
        (
            _NOBODY_HAS,
            1 << Capability.CAP_SYS_PTRACE.value,
            f"CAP_DAC_READ_SEARCH is missing, and the process {_OTHER}",
        ),
        (
            _NOBODY_HAS,
            0,
            f"CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE are missing, and the process {_OTHER}",
        ),
    ],
)
def test_denied_for_want_of_a_capability(
    machine: Machine, standing: Standing, owner: int, held: int, reason: str
) -> None:
    """
    What is missing is named, and why this process wants it.
    """
    denied = replace(standing, uid=owner, denial="Permission denied")

    check = judge_reading(47, denied, replace(machine, capabilities=held))

    assert (
        Status.MISSING,
        f"/proc/47 may not be inspected (Permission denied): {reason}",
        5,
    ) == (check.status, check.found, check.exit_code)


def test_the_remedy_grants_all_that_is_missing(machine: Machine, standing: Standing) -> None:
    """
    Both capabilities are in one command.
    """
    denied = replace(standing, denial="Permission denied")

    check = judge_reading(47, denied, replace(machine, capabilities=0, place=Place.DOCKER))

    assert "docker run --cap-add DAC_READ_SEARCH --cap-add SYS_PTRACE ..." == check.remedy


def test_denied_in_a_user_namespace(machine: Machine, standing: Standing) -> None:
    """
    A mapped root's CAP_SYS_PTRACE does not reach outside.
    """
    rootless = replace(machine, in_first_user_namespace=False)

    check = judge_reading(
        47, replace(standing, uid=machine.euid, denial="Permission denied"), rootless
    )

    assert check.found.endswith(
        ": the agent is in a user namespace, whose capabilities do not count outside of it"
    )


def test_denied_to_everybody(machine: Machine, standing: Standing) -> None:
    """
    Yama at 3 is named before any security module.
    """
    check = judge_reading(
        47,
        replace(standing, uid=machine.euid, denial="Permission denied"),
        replace(machine, ptrace_scope=3),
    )

    assert check.found.endswith(": kernel.yama.ptrace_scope is 3, which forbids it to everybody")


def test_denied_in_spite_of_everything(machine: Machine, standing: Standing) -> None:
    """
    With the capability in the first user namespace only a security module is left.
    """
    assert machine.has(Capability.CAP_SYS_PTRACE)

    check = judge_reading(
        47, replace(standing, uid=machine.euid, denial="Permission denied"), machine
    )

    assert check.found.endswith(
        ": CAP_SYS_PTRACE is there, so a security module of the kernel forbids it "
        "(lockdown,capability,apparmor)"
    )


def test_a_readable_process(machine: Machine, standing: Standing) -> None:
    """
    Nothing is missing.
    """
    assert Status.OK is judge_reading(47, standing, machine).status


def test_this_process() -> None:
    """
    The facts of the running test are read as they are.
    """
    standing = read_standing(os.getpid())

    assert standing is not None
    assert (os.getpid(), os.geteuid(), True, (), "") == (
        standing.tgid,
        standing.uid,
        standing.maps_files,
        standing.other_namespaces,
        standing.denial,
    )


def test_no_process() -> None:
    """
    A pid beyond the kernel's limit belongs to nobody.
    """
    assert None is read_standing(1 << 30)
