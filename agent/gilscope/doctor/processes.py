"""Finds every Python of this host and says in a line whether it could be traced."""

import os
from collections.abc import Sequence
from pathlib import Path

from gilscope.doctor.access import judge_reading, read_standing
from gilscope.doctor.machine import Machine
from gilscope.errors import GilscopeError, NotPermitted, NotPython
from gilscope.gil.target import inspect
from gilscope.model.diagnosis import PythonLine
from gilscope.process import procfs
from gilscope.process.view import name_of, view_of
from gilscope.runtimes.site_cache import SiteCache

__all__ = ["list_pythons"]


def list_pythons(cache_folder: Path, machine: Machine) -> tuple[tuple[PythonLine, ...], int]:
    """Return a line for each Python but the agent, and how many others could not be inspected.

    A process that may not be inspected has a line where its command line speaks of Python.
    """
    cache = SiteCache(cache_folder)
    lines: list[PythonLine] = []
    unreadable = 0
    for pid in sorted(set(procfs.list_pids()) - {os.getpid()}):
        try:
            command = procfs.read_command_line(pid)
            lines.append(_line(pid, command, cache, machine))
        except (NotPython, OSError):
            continue
        except NotPermitted:
            # A thread of the kernel has no command line.
            unreadable += bool(command)
    return tuple(lines), unreadable


def _line(pid: int, command: Sequence[str], cache: SiteCache, machine: Machine) -> PythonLine:
    name = name_of(pid, command)
    try:
        process = inspect(view_of(pid), cache).process
    except NotPython:
        raise
    except NotPermitted as error:
        if not _speaks_of_python(command):
            raise
        standing = read_standing(pid)
        if standing is None or not standing.denial:
            return PythonLine(pid, name, None, None, str(error), error.remedy)
        reading = judge_reading(pid, standing, machine)
        return PythonLine(pid, name, None, None, reading.found, reading.remedy)
    except GilscopeError as error:
        reason = str(error).removeprefix(f"process {pid}: ")
        return PythonLine(pid, name, None, None, reason, error.remedy)
    return PythonLine(pid, name, process.python, process.method)


def _speaks_of_python(command: Sequence[str]) -> bool:
    return bool(command) and "python" in command[0]
