"""Runs doctor where the agent may not do something, and expects the true cause.

Many of these causes look the same to a program that just tries: "Operation not permitted" or
"Failed to compile".
"""

import subprocess
from collections.abc import Iterator

import pytest

from support.commands.doctor import (
    AS_NOBODY,
    STAY,
    SYSTEM_PYTHON,
    doctor,
    found,
    missing,
    running,
    with_only,
)
from support.commands.gilscope import gilscope

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

# Denies bpf to whatever it executes: BPF_LD of the number, then the answer for 321 and for others.
_DENYING_BPF = """\
import ctypes, os, struct, sys
answer = int(sys.argv[1], 0)
program = b"".join(
    struct.pack("=HBBI", *instruction)
    for instruction in (
        (0x20, 0, 0, 0), (0x15, 0, 1, 321), (6, 0, 0, answer), (6, 0, 0, 0x7FFF0000)
    )
)
code = ctypes.create_string_buffer(program, len(program))
filter = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", 4, ctypes.addressof(code)), 16)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"
assert libc.prctl(22, 2, filter, 0, 0) == 0, "PR_SET_SECCOMP"
os.execv(sys.argv[2], sys.argv[2:])
"""
_ANSWER_EPERM, _ANSWER_ENOSYS, _KILL = "0x50001", "0x50026", "0x80000000"


@pytest.fixture(scope="module")
def python() -> Iterator[int]:
    """A Python of the system, which has all capabilities of the test."""
    with running([SYSTEM_PYTHON, "-c", STAY]) as pid:
        yield pid


_ENOUGH = [("bpf", "perfmon", "sys_ptrace"), ("sys_admin", "sys_ptrace")]


@pytest.mark.parametrize("capabilities", _ENOUGH, ids="+".join)
def test_enough_capabilities(python: int, capabilities: tuple[str, ...]) -> None:
    """
    Either set serves for a process that has more of them.
    """
    report = doctor("-p", str(python), wrapper=with_only(*capabilities))

    assert (0, [], []) == (report["exit_code"], missing(report), missing(report["process"]))


_WITH_CAPABILITIES = [
    "--inh-caps=-all,+bpf,+perfmon,+sys_ptrace",
    "--ambient-caps=-all,+bpf,+perfmon,+sys_ptrace",
]
_TOO_FEW = [
    (("bpf", "perfmon"), "CAP_SYS_PTRACE", ["capabilities"], ["memory"]),
    (("sys_admin",), "CAP_SYS_PTRACE", ["capabilities"], ["memory"]),
    (
        ("bpf", "sys_ptrace"),
        "CAP_PERFMON",
        ["capabilities", "bpf", "raw_tracepoints", "uprobes"],
        [],
    ),
    (
        ("perfmon", "sys_ptrace"),
        "CAP_BPF",
        ["capabilities", "bpf", "raw_tracepoints", "uprobes"],
        [],
    ),
]


@pytest.mark.parametrize(
    ("capabilities", "name", "machine", "process"),
    _TOO_FEW,
    ids=["no ptrace", "admin alone", "no perfmon", "no bpf"],
)
def test_too_few_capabilities(
    python: int, capabilities: tuple[str, ...], name: str, machine: list[str], process: list[str]
) -> None:
    """
    The one that is missing is named, wherever its absence shows.
    """
    report = doctor("-p", str(python), wrapper=with_only(*capabilities))

    assert (5, machine, process) == (
        report["exit_code"],
        missing(report),
        missing(report["process"]),
    )
    assert found(report, "capabilities").startswith(f"{name} is missing")
    assert [] == [
        check["name"]
        for check in [*report["checks"], *report["process"]["checks"]]
        if check["status"] == "missing" and f"{name} is missing" not in check["found"]
    ]


def test_no_capability(python: int) -> None:
    """
    All three are named, and one remedy grants them.
    """
    report = doctor("-p", str(python), wrapper=with_only())

    assert "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE are missing" == found(report, "capabilities")
    remedies = {
        check["remedy"]
        for check in report["checks"]
        if check["name"] in {"capabilities", "bpf", "uprobes"}
    }
    assert 1 == len(remedies)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (_ANSWER_EPERM, "a seccomp filter on the agent answers EPERM (Operation not permitted)"),
        (_ANSWER_ENOSYS, "a seccomp filter on the agent answers ENOSYS (Function not implemented)"),
        (_KILL, "a seccomp filter on the agent kills whoever calls bpf"),
    ],
    ids=["EPERM", "ENOSYS", "kill"],
)
def test_a_seccomp_filter(answer: str, words: str) -> None:
    """
    A filter that denies bpf is blamed for it, although all capabilities are there.
    """
    report = doctor(wrapper=[SYSTEM_PYTHON, "-c", _DENYING_BPF, answer])

    assert (5, ["seccomp", "bpf", "raw_tracepoints", "uprobes"]) == (
        report["exit_code"],
        missing(report),
    )
    assert "a filter on the agent forbids bpf, whatever its capabilities" == (
        found(report, "seccomp")
    )
    assert found(report, "bpf").startswith(words)


def test_a_user_namespace(python: int) -> None:
    """
    The root of a rootless container has all capabilities, and none that counts.
    """
    wrapper = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*wrapper, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody make user namespaces")

    report = doctor("-p", str(python), wrapper=wrapper)

    assert (5, "user_namespace", ["memory"]) == (
        report["exit_code"],
        missing(report)[0],
        missing(report["process"]),
    )
    assert "capabilities" not in missing(report)
    assert "in a user namespace" in found(report["process"], "memory")


def test_the_process_of_another_user() -> None:
    """
    Without CAP_DAC_READ_SEARCH even root may not open the memory of another user's process.
    """
    with running([*AS_NOBODY, SYSTEM_PYTHON, "-c", STAY]) as pid:
        refused = doctor("-p", str(pid), wrapper=with_only("bpf", "perfmon", "sys_ptrace"))
        granted = doctor(
            "-p", str(pid), wrapper=with_only("bpf", "perfmon", "sys_ptrace", "dac_read_search")
        )

    assert (5, ["memory"], 0) == (
        refused["exit_code"],
        missing(refused["process"]),
        granted["exit_code"],
    )
    assert found(refused["process"], "memory").endswith(
        ": CAP_DAC_READ_SEARCH is missing, and the process is of user nobody"
    )


def test_an_agent_that_is_not_root() -> None:
    """
    With the three capabilities any user's agent looks into that user's processes.
    """
    if gilscope("--version", wrapper=AS_NOBODY).exit_code:
        pytest.skip("the checkout or the Python of the tests lies in a closed folder")
    with running([*AS_NOBODY, SYSTEM_PYTHON, "-c", STAY]) as pid:
        report = doctor("-p", str(pid), wrapper=[*AS_NOBODY, *_WITH_CAPABILITIES])

    assert (0, [], []) == (report["exit_code"], missing(report), missing(report["process"]))
