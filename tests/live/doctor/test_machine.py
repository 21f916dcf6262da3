"""Runs doctor on this machine as it is, and where a part of it is missing."""

import os
import shutil
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from gilscope.bpf.compile.headers import find_headers, find_system_headers
from gilscope.bpf.features import kernel_features
from support.commands.doctor import STAY, SYSTEM_PYTHON, doctor, found, missing, running
from support.commands.gilscope import gilscope
from support.paths import AGENT, ROOT

pytestmark = [pytest.mark.live, pytest.mark.beside_others]


@pytest.fixture(scope="module")
def python() -> Iterator[int]:
    """A Python of the system, which has all capabilities of the test."""
    with running([SYSTEM_PYTHON, "-c", STAY]) as pid:
        yield pid


def test_everything_works_here() -> None:
    """
    Where live tests run, the machine is well: a ring buffer was made, the probes were loaded.
    """
    report = doctor()

    assert (True, 0, []) == (report["ok"], report["exit_code"], missing(report))
    assert found(report, "probes").startswith("compiled and loaded in ")
    assert "maps are made, a ring buffer too, and a program was loaded" == found(report, "bpf")
    assert found(report, "program_cache").startswith("compiled programs are remembered in /")


def test_features_of_this_kernel() -> None:
    """
    Where links are used every feature works in the best way, and a trap's cost was measured.
    """
    report = doctor()

    best = {"ok"} if kernel_features().uprobe_links else {"ok", "warning"}
    assert set() == {feature["status"] for feature in report["features"]} - best
    assert [True] == [
        feature["found"].endswith("; measured")
        for feature in report["features"]
        if feature["name"] == "trap_cost"
    ]
    cost = report["trap_cost"]
    assert cost.pop("measured")
    assert ["contention_s", "full_s", "stepped_s"] == sorted(
        name for name, seconds in cost.items() if seconds > 0
    )


def test_the_text_report_is_narrow(python: int) -> None:
    """
    As text it ends with the verdicts, uncoloured in a pipe and below 100 columns.
    """
    outcome = gilscope("doctor", "-p", str(python))

    lines = outcome.output.splitlines()
    assert (0, "") == (outcome.exit_code, outcome.messages)
    assert [
        "gilscope works here.",
        f"Process {python} can be traced: gilscope record -p {python}",
    ] == lines[-2:]
    assert [] == [line for line in lines if len(line) >= 100 or "\033" in line]


def test_alone_in_a_pid_namespace(python: int) -> None:
    """
    An agent that sees nobody is told how to share; a pid of the host means nothing to it.
    """
    wrapper = ["unshare", "--pid", "--fork", "--mount-proc"]

    report = doctor("-p", str(python), wrapper=wrapper)

    assert (13, ["pid_namespace"], ["process"]) == (
        report["exit_code"],
        missing(report),
        missing(report["process"]),
    )
    assert "one of its own, with no other process in it: there is nothing to trace" == (
        found(report, "pid_namespace")
    )


def test_the_proc_of_another_namespace() -> None:
    """
    A /proc that shows other pids than the agent's is named.
    """
    report = doctor(wrapper=["unshare", "--pid", "--fork"])

    assert (6, ["pid_namespace"]) == (report["exit_code"], missing(report))


def test_no_proc() -> None:
    """
    Without /proc nothing can be learned, and that is all that is said.
    """
    wrapper = ["unshare", "--mount", "/bin/sh", "-c", 'umount -l /proc && exec "$0" "$@"']

    outcome = gilscope("doctor", wrapper=wrapper)

    assert (6, "") == (outcome.exit_code, outcome.output)
    assert [
        (
            "error: /proc/self cannot be read (No such file or directory), and everything is "
            "learned from there"
        ),
        "mount -t proc proc /proc",
    ] == outcome.messages.splitlines()


def test_headers_that_are_not_there(tmp_path: Path) -> None:
    """
    A folder without headers is named with the first file that it lacks.
    """
    report = doctor(BCC_KERNEL_SOURCE=str(tmp_path))

    assert (6, ["kernel_headers"]) == (report["exit_code"], missing(report))
    assert f"BCC_KERNEL_SOURCE names {tmp_path}, which has no include/linux/kconfig.h" == (
        found(report, "kernel_headers")
    )


def test_no_headers_at_all(tmp_path: Path) -> None:
    """
    An installation without headers, on a machine without headers, says where it looked.
    """
    release = os.uname().release
    if find_headers({}, release, shipped=()) or find_system_headers(release):
        pytest.skip("this machine has kernel headers of its own")
    agent = ROOT
    shutil.copytree(agent / "agent", tmp_path / "agent")
    shutil.copytree(agent / "probes", tmp_path / "probes")

    report = doctor(PYTHONPATH=str(tmp_path / "agent"), BCC_KERNEL_SOURCE="")

    assert (6, ["kernel_headers"]) == (report["exit_code"], missing(report))
    assert "none in /lib/modules/" == found(report, "kernel_headers")[:21]


def test_another_bcc_on_the_python_path(tmp_path: Path) -> None:
    """
    What lies on PYTHONPATH does not pose as BCC.
    """
    (tmp_path / "bcc.py").touch()
    agent = AGENT

    report = doctor(PYTHONPATH=os.pathsep.join((str(tmp_path), str(agent))))

    assert (0, []) == (report["exit_code"], missing(report))


def test_another_bcc_in_the_environment(tmp_path: Path) -> None:
    """
    PyPI's package of that name in the agent's environment is passed over, and told of.
    """
    venv.create(tmp_path, system_site_packages=True, symlinks=True)
    (library,) = (tmp_path / "lib").glob("python*/site-packages")
    (library / "bcc.py").touch()
    python = str(tmp_path / "bin" / "python")
    path = os.pathsep.join([entry for entry in sys.path if entry])

    # The shell puts that environment's Python in the place of the tests' own.
    wrapper = ["/bin/sh", "-c", 'shift; exec "$0" "$@"', python]
    report = doctor(wrapper=wrapper, PYTHONPATH=path)

    assert f"; the module bcc of {python} is not BCC, and is passed over" in found(report, "bcc")
    assert (0, []) == (report["exit_code"], missing(report))
