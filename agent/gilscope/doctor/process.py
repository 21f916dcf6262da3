"""Examines one process from all sides, without touching it."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from gilscope.doctor.access import Standing, judge_reading, judge_standing, read_standing
from gilscope.doctor.interpreter import (
    Found,
    closed_path,
    judge_closed_path,
    judge_gil_code,
    judge_gils,
    judge_holds,
    judge_interpreter,
    judge_locks,
    sites_count,
)
from gilscope.doctor.machine import Machine
from gilscope.errors import GilscopeError, NoGil, NotPermitted, NotPython, UnsupportedPython
from gilscope.gil.target import inspect
from gilscope.locks.target import inspect_locks
from gilscope.model.diagnosis import Check, ProcessDiagnosis, Status
from gilscope.model.gil import Gil
from gilscope.model.transactions import StmProcess
from gilscope.naming.transaction_words import LIBRARY_WORDS, METHOD_WORDS, limits_of
from gilscope.process import procfs
from gilscope.process.files.mapped_file import leads_to
from gilscope.process.guarded_memory import GuardedMemory
from gilscope.process.reads import DirectReads
from gilscope.process.remote_read import TornRead
from gilscope.process.view import name_of, view_of
from gilscope.runtimes.base import Build
from gilscope.runtimes.cpython.code.gil_request import asked_for_gil
from gilscope.runtimes.registry import detect
from gilscope.runtimes.site_cache import SiteCache
from gilscope.transactions.target import inspect_stm

__all__ = ["diagnose_process", "is_readable"]

_Result = TypeVar("_Result")


def is_readable(diagnosis: ProcessDiagnosis | None) -> bool:
    """Return whether the agent could read the memory of the process."""
    return diagnosis is not None and any(
        check.name == "memory" and check.status is Status.OK for check in diagnosis.checks
    )


def diagnose_process(pid: int, machine: Machine, cache_folder: Path) -> ProcessDiagnosis:
    """Return what there is to say about process *pid*."""
    try:
        standing = read_standing(pid)
        name = name_of(pid, procfs.read_command_line(pid)) if standing else ""
    except (OSError, KeyError):
        standing, name = None, ""
    existence = judge_standing(pid, standing, name, machine)
    outside = ProcessDiagnosis(pid, name, existence)
    if standing is None or existence[0].status is Status.MISSING:
        return outside
    reading = judge_reading(pid, standing, machine)
    outside = replace(outside, checks=(*existence, reading))
    if reading.status is Status.MISSING:
        return outside
    return _diagnose_python(outside, standing, machine, SiteCache(cache_folder))


def _diagnose_python(
    outside: ProcessDiagnosis, standing: Standing, machine: Machine, cache: SiteCache
) -> ProcessDiagnosis:
    pid = outside.pid
    build = _attempted("interpreter", lambda: detect(view_of(pid)))
    if isinstance(build, Check):
        instead = _transactions(pid, build)
        if instead is not None:
            return replace(outside, checks=(*outside.checks, instead))
        if build.exit_code == NoGil.exit_code:
            locks = _locks(pid)
            if not all(each.status is Status.OK for each in locks):
                build = replace(build, remedy=NoGil.with_a_gil)
            return replace(outside, checks=(*outside.checks, build, *locks))
        closed = closed_path(pid) if build.exit_code == NotPermitted.exit_code else None
        if closed is not None:
            build = judge_closed_path(closed, machine)
        return replace(outside, checks=(*outside.checks, build))
    with contextlib.closing(build):
        return _diagnose_build(outside, build, standing, cache)


def _diagnose_build(
    outside: ProcessDiagnosis, build: Build, standing: Standing, cache: SiteCache
) -> ProcessDiagnosis:
    pid = outside.pid
    target = _attempted("gil_code", lambda: inspect(view_of(pid), cache))
    found = None
    code: tuple[Check, ...]
    if isinstance(target, Check):
        code = (target,)
    else:
        target.close()
        found = Found(target, target.sites)
        code = (judge_gil_code(found), judge_holds(found))
    is_replaced = not leads_to(pid, build.file)
    # First, because some builds are known better then.
    threads, gils, needing = _read_runtime(build)
    interpreter = judge_interpreter(build, is_replaced=is_replaced)
    is_asked_for = build.version.endswith("t") and _is_asked_for_gil(pid)
    gil_check = judge_gils(
        gils, threads, standing.threads, build.lock_form, needing, is_asked_for=is_asked_for
    )
    return replace(
        outside,
        checks=(*outside.checks, interpreter, *code, gil_check, *_locks(pid)),
        python=build.version,
        build_id=build.build_id,
        path=build.file.mapping.path,
        opened_as=build.file.opened_as,
        method=found.target.process.method if found else None,
        sites=sites_count(found) if found else None,
        gils=tuple(gil.interpreter_id for gil in gils) if isinstance(gils, list) else None,
        threads=threads,
    )


def _transactions(pid: int, build: Check) -> Check | None:
    """Return how the transactions of *pid* can be traced, which has no GIL that can be."""
    if build.exit_code not in (NotPython.exit_code, UnsupportedPython.exit_code):
        return None
    target = _attempted("interpreter", lambda: inspect_stm(view_of(pid)))
    if target is None or isinstance(target, Check):
        return None
    process = target.process
    found = (
        f"no Python with a GIL, but transactions of {LIBRARY_WORDS[process.library]}, which are "
        f"seen {METHOD_WORDS[process.method]}; {'; '.join(process.checks)}"
    )
    # What is not seen of it, and what would show more.
    return Check("interpreter", Status.OK, ". ".join([found, *_limits(process)]))


def _limits(process: StmProcess) -> Iterator[str]:
    return (limit.removesuffix(".") for limit in limits_of(process))


def _locks(pid: int) -> tuple[Check, ...]:
    """Return how the locks of *pid* are seen with --locks; nothing of a Python that is too old."""
    target = _attempted("locks", lambda: inspect_locks(view_of(pid)))
    if not isinstance(target, Check):
        target.close()
        return (judge_locks(target.process.checks),)
    if target.exit_code in (NotPython.exit_code, UnsupportedPython.exit_code):
        return ()
    return (judge_locks(target),)


def _attempted(name: str, action: Callable[[], _Result]) -> _Result | Check:
    try:
        return action()
    except GilscopeError as error:
        return Check(name, Status.MISSING, str(error), error.remedy, error.exit_code)
    except OSError as error:
        found = f"the process ended meanwhile ({error.strerror})"
        return Check(name, Status.MISSING, found, NotPython.remedy, NotPython.exit_code)


def _is_asked_for_gil(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return asked_for_gil(pid)
    return False


def _read_runtime(build: Build) -> tuple[int | None, list[Gil] | str, tuple[str, ...]]:
    """Return its threads, its locks or why they cannot be read, and the modules that need them."""
    try:
        with GuardedMemory(build.pid, [build.file.mapping]) as memory:
            instance = build.instance(memory, DirectReads())
            threads, gils = instance.count_threads(), instance.gils()
            with contextlib.suppress(TornRead):
                return threads, gils, instance.modules_that_need_gil()
            return threads, gils, ()
    except (OSError, TornRead, GilscopeError) as error:
        return None, str(error), ()
