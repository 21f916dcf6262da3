"""Parsers of /proc."""

import os
import subprocess

import pytest

from gilscope.process import procfs
from gilscope.process.procfs import Mapping

_MAPS = """\
00400000-00423000 r--p 00000000 fd:00 1234                               /usr/bin/python3.11
00423000-006d9000 r-xp 00023000 fd:00 1234                               /usr/bin/python3.11
7f0000000000-7f0000021000 rw-p 00000000 00:00 0
7f1000000000-7f1000001000 r-xp 00001000 fd:00 99                         /tmp/a b.so (deleted)
7ffd5d9e6000-7ffd5da07000 rw-p 00000000 00:00 0                          [stack]
"""
_DEVICE = os.makedev(0xFD, 0)
_STATUS = (
    "Name:\tpy) x\nState:\tS (sleeping)\nTgid:\t42\nPid:\t42\nPPid:\t7\nNSpid:\t42\t5\n"
    "CapEff:\t000001fffeffffff\nSeccomp:\t2\n"
)
_CONTAINER = "0123456789abcdef" * 4
_POD_SLICE = "0::/kubepods.slice/kubepods-pod1b2c3d4e_0000_1111_2222_333344445555.slice/"


def test_maps_are_the_mapped_files() -> None:
    """
    Anonymous memory is left out; names keep blanks and lose the mark of a deleted file.
    """
    mappings = procfs.parse_maps(_MAPS)

    assert (
        Mapping(0x400000, 0x423000, False, 0, 1234, "/usr/bin/python3.11", False, _DEVICE),
        Mapping(0x423000, 0x6D9000, True, 0x23000, 1234, "/usr/bin/python3.11", False, _DEVICE),
        Mapping(0x7F1000000000, 0x7F1000001000, True, 0x1000, 99, "/tmp/a b.so", True, _DEVICE),
    ) == mappings


@pytest.mark.parametrize("end", ["\r", "\v", "\f", "\x1c", "\x85", "\u2028"])
def test_a_name_cannot_forge_a_mapping(end: str) -> None:
    """
    The kernel ends a line with a newline and with nothing else, and writes no other in a name.
    """
    forged = "7f0000000000-7f0000001000 r-xp 00000000 fd:00 7 /etc/python3"

    mappings = procfs.parse_maps(f"400000-401000 r--p 00000000 fd:00 9 /tmp/a{end}{forged}\n")

    assert [f"/tmp/a{end}{forged}"] == [mapping.path for mapping in mappings]


def test_a_name_is_not_guessed() -> None:
    """
    What looks like an escaped newline may be four characters of the name.
    """
    (mapping,) = procfs.parse_maps("400000-401000 r--p 0 fd:00 9 /tmp/a\\012/python3\n")

    assert "/tmp/a\\012/python3" == mapping.path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x86_Thread_features:\tshstk wrss \n", True),
        ("x86_Thread_features:\tshstk\n", True),
        ("x86_Thread_features:\t\n", False),
        ("x86_Thread_features_locked:\tshstk wrss \n", False),
        ("", False),
    ],
)
def test_status_tells_of_a_shadow_stack(line: str, *, expected: bool) -> None:
    """
    The features that are on count, not those that are locked.
    """
    assert expected == procfs.parse_status(_STATUS + line).has_shadow_stack


def test_status_tells_both_pids_of_a_contained_process() -> None:
    """
    NSpid lists the ids from the outermost namespace to the process' own.
    """
    status = procfs.parse_status(_STATUS)

    assert (42, 5) == status.namespace_pids
    assert ("S", 42, 7, 2) == (status.state, status.tgid, status.parent, status.seccomp)
    assert 1 << 39 == status.effective_capabilities & 1 << 39


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"0::/system.slice/docker-{_CONTAINER}.scope\n", (_CONTAINER, None)),
        (f"12:cpu:/docker/{_CONTAINER}\n", (_CONTAINER, None)),
        (
            f"{_POD_SLICE}cri-containerd-{_CONTAINER}.scope\n",
            (_CONTAINER, "1b2c3d4e-0000-1111-2222-333344445555"),
        ),
        (
            f"1:name=systemd:/kubepods/pod1b2c3d4e-0000-1111-2222-333344445555/{_CONTAINER}\n",
            (_CONTAINER, "1b2c3d4e-0000-1111-2222-333344445555"),
        ),
        ("0::/user.slice/session-1.scope\n", (None, None)),
    ],
)
def test_cgroup_tells_container_and_pod(text: str, expected: tuple[str | None, str | None]) -> None:
    """
    Docker's, containerd's and Kubernetes' forms are understood, with both cgroup drivers.
    """
    assert expected == procfs.parse_cgroup(text)


def test_own_process_is_read() -> None:
    """
    The readers work on a real process: this one.
    """
    pid = os.getpid()

    assert pid in set(procfs.list_pids())
    assert pid in procfs.list_tids(pid)
    assert pid == procfs.read_status(pid).tgid
    assert any(mapping.executable for mapping in procfs.read_maps(pid))


def test_a_process_that_has_ended_is_ending() -> None:
    """
    Also while its parent has not taken note of it; one that lives is not.
    """
    with subprocess.Popen(["sleep", "60"]) as process:
        assert not procfs.is_ending(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert procfs.is_ending(process.pid)
        process.wait()
    assert procfs.is_ending(process.pid)
