"""Tests of what is said about an interpreter that was found."""

import os
from dataclasses import replace

import pytest

from gilscope.doctor.interpreter import (
    Found,
    judge_closed_path,
    judge_gil_code,
    judge_gils,
    judge_holds,
    judge_interpreter,
    judge_locks,
)
from gilscope.doctor.machine import Machine
from gilscope.gil.target import Hookpoint, Target
from gilscope.model.diagnosis import Check, Status
from gilscope.model.gil import Gil, Process
from gilscope.process.files.code_files import CodeFile
from gilscope.process.files.mapped_file import MappedFile
from gilscope.process.files.regular_file import HeldFile
from gilscope.process.procfs import Mapping
from gilscope.runtimes.base import Build
from gilscope.runtimes.cpython.build import CPythonBuild
from gilscope.runtimes.cpython.detect import Interpreter
from gilscope.runtimes.cpython27.build import CPython27Build
from gilscope.runtimes.cpython27.detect import Interpreter27
from gilscope.runtimes.pypy.build import PyPyBuild
from gilscope.runtimes.sites import LockForm, PausePoint, Site, Sites

_SITE = Site(0x1000, 0x1000)
_PAUSE = PausePoint(_SITE, _SITE)
_SITES = Sites(
    build_id="ab" * 20,
    waits=(_PAUSE,),
    yields=(_PAUSE, _PAUSE),
    acquires=(_SITE,),
    releases=(_SITE, _SITE, _SITE),
    forced_drops=(),
    forced_takes=(),
    callers=(),
    checks=("take_gil is there", "symbols agree"),
)


_LIBC = Mapping(0x7F0000000000, 0x7F0000001000, False, 0, 8, "/lib/libc.so.6", False)


def _held() -> HeldFile:
    return HeldFile(os.open(__file__, os.O_RDONLY))


def _build(opened_as: str) -> CPythonBuild:
    mapping = Mapping(0x400000, 0x500000, False, 0, 7, "/usr/bin/python3.11", False)
    return CPythonBuild(
        pid=47,
        file=MappedFile(mapping, opened_as, _held()),
        interpreter=Interpreter((3, 11), "3.11.2", 0x1000, 0x2000, None),
        build_id="ab" * 20,
        load_bias=0,
    )


def _target(method: str) -> Target:
    return Target(
        build=_build("/proc/47/root/usr/bin/python3.11"),
        process=Process(47, "app.py", "3.11.2", "ab" * 20, method),
        file=MappedFile(_LIBC, "/proc/47/root/lib/libc.so.6", _held()),
        hookpoints=(Hookpoint("on_libc_wait", 1), Hookpoint("on_libc_yield", 2)),
        fallback_reason="the file has no section headers",
    )


def test_an_interpreter_on_disk() -> None:
    """
    Version, path and the beginning of the build-id.
    """
    check = judge_interpreter(_build("/proc/47/exe"), is_replaced=False)

    assert "CPython 3.11.2, /usr/bin/python3.11, build abababababab" == check.found


def test_a_replaced_interpreter() -> None:
    """
    The way that leads to the replaced file is told.
    """
    check = judge_interpreter(_build("/proc/47/exe"), is_replaced=True)

    assert (Status.OK, True) == (
        check.status,
        check.found.endswith(
            "; the file was replaced or removed since the process started, and is opened as "
            "/proc/47/exe"
        ),
    )


def test_call_sites() -> None:
    """
    The sites are counted by kind, and what vouches for them is told.
    """
    check = judge_gil_code(Found(_target("sites"), _SITES))

    assert (
        "its own call sites: 1 wait, 2 yields, 1 acquire, 3 releases; take_gil is there; symbols "
        "agree" == check.found
    )


def test_the_libc_method() -> None:
    """
    It is a warning that names the library and why the sites could not be used.
    """
    check = judge_gil_code(Found(_target("libc"), None))

    assert (
        Status.WARNING,
        "by 2 functions of /lib/libc.so.6, because the file has no section headers",
    ) == (check.status, check.found)


@pytest.mark.parametrize(
    ("target", "status", "words"),
    [
        (_target("sites"), Status.OK, "seen in full and auto mode; the kernel emulates its calls"),
        (
            replace(_target("sites"), is_stepped=True),
            Status.WARNING,
            (
                "seen in full and auto mode, at the highest cost of a trap: its calls go through "
                "slots in memory, which the kernel has to single-step"
            ),
        ),
        (
            _target("libc"),
            Status.WARNING,
            (
                "not seen by these functions: its waits are, and how long the GIL is held is "
                "estimated"
            ),
        ),
    ],
    ids=["emulated", "stepped", "libc"],
)
def test_holds(target: Target, status: Status, words: str) -> None:
    """
    They are seen at call sites only, and cost more where these are not plain calls.
    """
    check = judge_holds(Found(target, _SITES if target.process.method == "sites" else None))

    assert (status, words) == (check.status, check.found)


_FILE = MappedFile(_LIBC, "/proc/47/root/lib/libpypy3.11-c.so", _held())


@pytest.mark.parametrize(
    ("build", "where", "why"),
    [
        (
            PyPyBuild(47, _FILE, "ab" * 20, 0),
            "its own call sites",
            "single instructions in hundreds of places",
        ),
        (
            CPython27Build(
                *(47, _FILE, Interpreter27("2.7.18", 1, 2, 3, 4, 5), "ab" * 20, 0),
                CodeFile(_LIBC, ()),
            ),
            "sites in libc",
            "in another way than is known",
        ),
    ],
    ids=["pypy", "cpython-2.7"],
)
def test_locks_whose_holds_nobody_sees(build: Build, where: str, why: str) -> None:
    """
    It is not said that full mode sees them; and where the sites lie is.
    """
    target = _target("sites")
    target = replace(target, build=build, process=replace(target.process, shows_holds=False))
    found = Found(target, _SITES)
    code, holds = judge_gil_code(found), judge_holds(found)

    assert code.found.startswith(f"{where}: {len(target.hookpoints)} place")
    assert Status.WARNING is holds.status
    assert holds.found.startswith("not seen of this lock, ")
    assert why in holds.found


def test_holds_of_a_semaphore() -> None:
    """
    They are seen in libc, and what else that costs is told.
    """
    interpreter = Interpreter27("2.7.18", 1, 2, 3, 4, 5)
    build = CPython27Build(47, _FILE, interpreter, "ab" * 20, 0, CodeFile(_LIBC, ()))

    check = judge_holds(Found(replace(_target("sites"), build=build), _SITES))

    assert Status.OK is check.status
    assert "in libc, where every other semaphore traps as well" in check.found


def test_several_gils() -> None:
    """
    The owners are named.
    """
    gils = [Gil(0x10, 0), Gil(0x20, 3)]

    check = judge_gils(gils, 5, 9)

    assert "2 GILs (interpreters 0, 3), 5 Python threads of 9" == check.found


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ((), ""),
        (("two",), ", nor does two"),
        (("two", "three"), ", nor do two, three"),
        (tuple("abcdefg"), ", nor do a, b, c, d, e and 2 more"),
    ],
)
def test_a_gil_that_modules_need_is_said_to_be_theirs(others: tuple[str, ...], words: str) -> None:
    """
    In the order of their import.
    """
    check = judge_gils([Gil(0x10, 0)], 5, 9, LockForm.CONDITION, ("one", *others))

    assert check.found.endswith(f"; module one does not say that it can do without one{words}")


def test_no_gil_yet() -> None:
    """
    A Python that has not been initialised is no failure.
    """
    assert Status.WARNING is judge_gils([], 0, 1).status


def test_locks_that_cannot_be_read() -> None:
    """
    The reason is passed on, under the code for GIL code that was not found.
    """
    check = judge_gils("no GIL around 0x10", None, 1)

    assert (
        Status.MISSING,
        "the interpreters could not be read from memory (no GIL around 0x10)",
        4,
    ) == (check.status, check.found, check.exit_code)


def test_a_closed_folder(machine: Machine) -> None:
    """
    The file, the agent's user and the capability that opens it are named.
    """
    check = judge_closed_path("/root/python3", machine)

    assert check.found.startswith("/root/python3 may not be opened by uid 1000: ")
    assert check.remedy.endswith("AmbientCapabilities=CAP_DAC_READ_SEARCH")


@pytest.mark.parametrize(
    ("found", "check"),
    [
        (
            ("2 places", "mutexes spin"),
            Check("locks", Status.OK, "seen with --locks: 2 places; mutexes spin"),
        ),
        (
            Check("locks", Status.MISSING, "none was found", "report it", 4),
            Check("locks", Status.WARNING, "not seen: none was found", "report it"),
        ),
    ],
)
def test_locks_are_seen_or_why_not(found: tuple[str, ...] | Check, check: Check) -> None:
    """
    A process with a GIL can be traced without them.
    """
    assert check == judge_locks(found)
