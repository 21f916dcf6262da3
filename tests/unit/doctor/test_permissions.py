"""Tests of the judgement on rights, switches and namespaces."""

import errno
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.doctor.machine import Capability, Machine, Place
from gilscope.doctor.permissions import (
    judge_environment,
    judge_program_cache,
    judge_rights,
    judge_site_cache,
    judge_switches,
)
from gilscope.doctor.syscall_trials import Attempt
from gilscope.model.diagnosis import Check, Status

Attempts = Mapping[Attempt, int]

_NO_PTRACE = (1 << Capability.CAP_BPF.value) | (1 << Capability.CAP_PERFMON.value)


def _named(name: str, checks: tuple[Check, ...]) -> Check:
    (check,) = (check for check in checks if check.name == name)
    return check


def _rights(machine: Machine, attempts: Attempts, *, readable: bool = False) -> tuple[Check, ...]:
    return judge_rights(machine, attempts, can_place_uprobes=True, target_is_readable=readable)


def test_enough_capabilities(machine: Machine, attempts: Attempts) -> None:
    """
    Those that gilscope uses are listed.
    """
    check = _named("capabilities", _rights(machine, attempts))

    assert (Status.OK, "enough: CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE") == (
        check.status,
        check.found,
    )


@pytest.mark.parametrize(("readable", "status"), [(False, Status.MISSING), (True, Status.WARNING)])
def test_without_sys_ptrace(
    machine: Machine, attempts: Attempts, *, readable: bool, status: Status
) -> None:
    """
    It is missing, unless the one process that was asked about can be read without it.
    """
    bare = replace(machine, capabilities=_NO_PTRACE)

    check = _named("capabilities", _rights(bare, attempts, readable=readable))

    assert status is check.status
    assert check.found.startswith("CAP_SYS_PTRACE is missing: ")


@pytest.mark.parametrize(
    ("place", "euid", "remedy"),
    [
        (Place.DOCKER, 0, "docker run --cap-add SYS_PTRACE ..."),
        (Place.PODMAN, 0, "podman run --cap-add SYS_PTRACE ..."),
        (Place.KUBERNETES, 0, "securityContext: {capabilities: {add: [SYS_PTRACE]}}"),
        (
            Place.HOST,
            1000,
            "sudo gilscope ...; in a systemd unit: AmbientCapabilities=CAP_SYS_PTRACE",
        ),
        (
            Place.HOST,
            0,
            (
                "Whoever started this dropped it; in a systemd unit: "
                "CapabilityBoundingSet=CAP_SYS_PTRACE; in a container: --cap-add SYS_PTRACE"
            ),
        ),
    ],
)
def test_the_remedy_fits_the_place(
    machine: Machine, attempts: Attempts, place: Place, euid: int, remedy: str
) -> None:
    """
    A capability is given in the words of whoever started the agent.
    """
    bare = replace(machine, capabilities=_NO_PTRACE, place=place, euid=euid)

    assert remedy == _named("capabilities", _rights(bare, attempts)).remedy


def test_a_user_namespace_is_told_of(machine: Machine, attempts: Attempts) -> None:
    """
    It has a check of its own, with the code for what is not permitted.
    """
    rootless = replace(machine, in_first_user_namespace=False)

    check = _named("user_namespace", _rights(rootless, attempts))

    assert (Status.MISSING, 5) == (check.status, check.exit_code)


@pytest.mark.parametrize(
    ("facts", "bpf", "status"),
    [
        ({"seccomp": 0, "capabilities": _NO_PTRACE}, errno.EINVAL, Status.OK),
        ({"seccomp": 2, "capabilities": _NO_PTRACE}, errno.EINVAL, Status.OK),
        ({"seccomp": 2, "capabilities": _NO_PTRACE}, errno.EPERM, Status.MISSING),
        ({"seccomp": 2, "capabilities": 0}, errno.EPERM, Status.UNKNOWN),
        ({"seccomp": 2, "capabilities": 0}, errno.ENOSYS, Status.MISSING),
    ],
)
def test_seccomp(
    machine: Machine, attempts: Attempts, facts: dict[str, int], bpf: int, status: Status
) -> None:
    """
    A filter is to blame where the call does not reach the kernel, and for sure.
    """
    filtered = replace(machine, seccomp=facts["seccomp"], capabilities=facts["capabilities"])

    check = _named("seccomp", _rights(filtered, {**attempts, Attempt.BPF_REACHED: bpf}))

    assert status is check.status


@pytest.mark.parametrize(
    ("scope", "capabilities", "readable", "status"),
    [
        (None, 0, False, Status.OK),
        (0, 0, False, Status.OK),
        (1, 0, False, Status.MISSING),
        (1, 0, True, Status.OK),
        (2, 1 << Capability.CAP_SYS_PTRACE.value, False, Status.OK),
        (3, 1 << Capability.CAP_SYS_PTRACE.value, False, Status.MISSING),
    ],
)
def test_yama(
    machine: Machine, *, scope: int | None, capabilities: int, readable: bool, status: Status
) -> None:
    """
    From 1 on it wants CAP_SYS_PTRACE, at 3 nothing helps.
    """
    guarded = replace(machine, ptrace_scope=scope, capabilities=capabilities)

    checks = judge_switches(guarded, target_is_readable=readable)

    assert status is _named("ptrace_scope", checks).status


@pytest.mark.parametrize(
    ("release", "limit", "capabilities", "status"),
    [
        ("5.11.0", 65536, 0, Status.OK),
        ("5.10.0", 65536, 0, Status.WARNING),
        ("5.10.0", None, 0, Status.OK),
        ("5.10.0", 65536, 1 << Capability.CAP_SYS_RESOURCE.value, Status.OK),
    ],
)
def test_locked_memory(
    machine: Machine, release: str, limit: int | None, capabilities: int, status: Status
) -> None:
    """
    The limit matters before 5.11, to those who may not raise it.
    """
    limited = replace(machine, release=release, memlock_bytes=limit, capabilities=capabilities)

    assert status is _named("memlock", judge_switches(limited, target_is_readable=False)).status


@pytest.mark.parametrize("tracefs", [None, "/sys/kernel/tracing"])
def test_tracefs_is_not_needed(machine: Machine, tracefs: str | None) -> None:
    """
    Mounted or not, it is well, and the reader learns that it does not matter.
    """
    checks = judge_switches(replace(machine, tracefs=tracefs), target_is_readable=False)

    assert Status.OK is _named("tracefs", checks).status
    assert _named("tracefs", checks).found.endswith("; gilscope does not use it")


@pytest.mark.parametrize(
    ("is_first", "sees_others", "proc_is_own", "status"),
    [
        (True, True, True, Status.OK),
        (False, True, True, Status.OK),
        (False, False, True, Status.WARNING),
        (False, True, False, Status.MISSING),
    ],
)
def test_pid_namespace(
    machine: Machine, *, is_first: bool, sees_others: bool, proc_is_own: bool, status: Status
) -> None:
    """
    One of its own is fine if there is somebody in it, and if /proc shows it.
    """
    contained = replace(
        machine,
        in_first_pid_namespace=is_first,
        sees_other_processes=sees_others,
        proc_is_own=proc_is_own,
    )

    assert (status,) == tuple(check.status for check in judge_environment(contained))


def test_alone_for_ever(machine: Machine) -> None:
    """
    An agent that is process 1 and alone has nothing to wait for, and an exit code for that.
    """
    alone = replace(machine, in_first_pid_namespace=False, sees_other_processes=False, is_init=True)

    (check,) = judge_environment(alone)

    assert (Status.MISSING, 13) == (check.status, check.exit_code)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (Place.DOCKER, "docker run --pid container:TARGET ..."),
        (Place.PODMAN, "podman run --pid container:TARGET ..."),
        (Place.KUBERNETES, "sidecar: shareProcessNamespace: true; DaemonSet: hostPID: true"),
    ],
)
def test_how_to_see_others(machine: Machine, place: Place, words: str) -> None:
    """
    The remedy of an agent that is alone is the runtime's.
    """
    alone = replace(machine, in_first_pid_namespace=False, sees_other_processes=False, place=place)

    (check,) = judge_environment(alone)

    assert check.remedy.startswith(words)


def test_a_cache_that_will_be_made(tmp_path: Path) -> None:
    """
    A folder that does not exist yet is judged by the one above it.
    """
    assert Status.OK is judge_site_cache(tmp_path / "cache" / "gilscope").status


def test_a_cache_under_a_file(tmp_path: Path) -> None:
    """
    A folder that cannot be made costs time, and is no failure.
    """
    (tmp_path / "file").touch()

    assert Status.WARNING is judge_site_cache(tmp_path / "file" / "gilscope").status


def test_no_home() -> None:
    """
    Without a home directory the other commands would fail, so it is missing.
    """
    assert Status.MISSING is judge_site_cache(None).status


def test_programs_are_remembered(tmp_path: Path) -> None:
    """
    In a folder that nobody else can write to, also in one that has yet to be made.
    """
    for folder in (tmp_path, tmp_path / "cache" / "gilscope"):
        check = judge_program_cache(folder)
        assert (Status.OK, f"compiled programs are remembered in {folder}") == (
            check.status,
            check.found,
        )


def test_programs_are_not_remembered_where_others_can_write(tmp_path: Path) -> None:
    """
    The folder that stands open is named, which may be one above.
    """
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)

    check = judge_program_cache(tmp_path / "open" / "gilscope")

    assert Status.WARNING is check.status
    assert check.found.endswith(
        f", and not remembered: {tmp_path}/open can be written to by others"
    )
    assert "XDG_CACHE_HOME=/var/cache gilscope ..." == check.remedy


def test_programs_are_not_remembered_without_a_folder(tmp_path: Path) -> None:
    """
    Under a file no folder can be made; without a home directory it is said once.
    """
    (tmp_path / "file").touch()

    assert Status.WARNING is judge_program_cache(tmp_path / "file" / "gilscope").status
    assert Status.UNKNOWN is judge_program_cache(None).status
    assert Status.OK is judge_program_cache(None, is_needed=False).status
