"""Tests of the facts that are read from this machine."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.doctor.machine import Capability, Machine, read_machine, version_of
from gilscope.doctor.syscall_trials import Attempt, make_attempts


@pytest.mark.parametrize(
    ("release", "version"),
    [("6.18.44-fc", (6, 18)), ("4.18.0-553.el8.x86_64", (4, 18)), ("odd", (0, 0))],
)
def test_versions(release: str, version: tuple[int, int]) -> None:
    """
    The first two numbers count.
    """
    assert version == version_of(release)


@pytest.mark.parametrize(
    ("release", "uses_links"),
    [
        ("5.15.0", False),
        ("6.6.0", False),
        ("6.9.12", False),
        ("6.10.0", True),
        ("6.18.44", True),
        ("7.0.0", True),
        ("odd", False),
    ],
)
def test_links_are_used_since_they_see_all_threads(
    machine: Machine, *, release: str, uses_links: bool
) -> None:
    """
    Links are older than 6.10, but saw the main thread only.
    """
    assert uses_links is replace(machine, release=release).uses_links


def test_this_machine() -> None:
    """
    Release, user and capabilities are those of the running process.
    """
    lines = dict(
        line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines()
    )

    found = read_machine()

    assert (os.uname().release, os.geteuid(), int(lines["CapEff"], 16), True) == (
        found.release,
        found.euid,
        found.capabilities,
        found.proc_is_own,
    )


def test_a_capability_is_a_bit(machine: Machine) -> None:
    """
    The numbers are those of <linux/capability.h>.
    """
    bits = {
        capability.name: capability.value
        for capability in Capability
        if replace(machine, capabilities=1 << capability.value).has(capability)
    }

    assert {
        "CAP_DAC_OVERRIDE": 1,
        "CAP_DAC_READ_SEARCH": 2,
        "CAP_SYS_PTRACE": 19,
        "CAP_SYS_ADMIN": 21,
        "CAP_SYS_RESOURCE": 24,
        "CAP_PERFMON": 38,
        "CAP_BPF": 39,
    } == bits


@pytest.mark.parametrize("uses_links", [False, True])
def test_every_attempt_is_made(*, uses_links: bool) -> None:
    """
    Each has an answer, also without any right, and pidfd_open needs none.
    """
    answers = make_attempts(None, uses_links=uses_links)

    assert set(Attempt) == set(answers)
    assert 0 == answers[Attempt.PIDFD]
