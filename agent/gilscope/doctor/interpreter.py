"""Judges what was found in a process: the interpreter's file, its GIL code, its locks."""

from collections.abc import Sequence
from typing import Final

from gilscope.doctor.machine import Machine
from gilscope.doctor.remedies import grant
from gilscope.errors import GilCodeNotFound, NotPermitted
from gilscope.gil.target import Target
from gilscope.model.diagnosis import Check, Status
from gilscope.model.gil import Gil
from gilscope.naming.python import python_words
from gilscope.process import procfs
from gilscope.process.files.mapped_file import check_name
from gilscope.runtimes.base import Build
from gilscope.runtimes.sites import LockForm, Sites
from gilscope.text.printable import printable
from gilscope.values import dataclass

__all__ = [
    "Found",
    "closed_path",
    "judge_closed_path",
    "judge_gil_code",
    "judge_gils",
    "judge_holds",
    "judge_interpreter",
    "judge_locks",
    "sites_count",
]

_SHORT_BUILD_ID: Final = 12
_MOST_NAMED: Final = 5
_UNSEEN_HOLDS: Final = {
    LockForm.SEMAPHORE: "which this libc takes and gives back in another way than is known",
    LockForm.TURNS: "which single instructions in hundreds of places acquire and release",
}
"""Why full mode has no holds of such locks."""


@dataclass(frozen=True, slots=True)
class Found:
    """How a process would be traced."""

    target: Target
    sites: Sites | None
    """None with the libc method."""


def closed_path(pid: int) -> str | None:
    """Return the first program file of *pid* that lies in a folder closed to the agent, or None."""
    try:
        mappings = procfs.read_maps(pid)
    except OSError:
        return None
    for mapping in mappings:
        try:
            check_name(pid, mapping)
        except PermissionError:
            if mapping.executable or not mapping.offset:
                return mapping.path
        except OSError:
            continue
    return None


def judge_closed_path(path: str, machine: Machine) -> Check:
    """Return the check for an interpreter whose file the agent's user may not open."""
    return Check(
        "interpreter",
        Status.MISSING,
        f"{path} may not be opened by uid {machine.euid}: the file, or a folder above it, is "
        "closed to others",
        grant(["CAP_DAC_READ_SEARCH"], machine),
        NotPermitted.exit_code,
    )


def judge_interpreter(build: Build, *, is_replaced: bool) -> Check:
    """Return which interpreter it is, and how its file is opened.

    *is_replaced*: its name does not lead to it any more.
    """
    file, build_id = build.file, build.build_id.removeprefix("sha256:")
    found = (
        f"{python_words(build.version)}, {file.mapping.path}, build {build_id[:_SHORT_BUILD_ID]}"
    )
    if not is_replaced:
        return Check("interpreter", Status.OK, found)
    return Check(
        "interpreter",
        Status.OK,
        f"{found}; the file was replaced or removed since the process started, and is opened as "
        f"{file.opened_as}",
    )


def judge_gil_code(found: Found) -> Check:
    """Return by which method the GIL would be observed, and what vouches for it."""
    target, sites = found.target, found.sites
    if target.process.method == "sites":
        counts = (sites_count(found) or {}).items()
        if target.build.lock_form is not LockForm.CONDITION:
            counts = {"places": len(target.hookpoints)}.items()
        words = ", ".join(f"{count} {kind if count > 1 else kind[:-1]}" for kind, count in counts)
        proof = "".join(f"; {sentence}" for sentence in (sites.checks if sites else ()))
        is_in_libc = target.build.lock_form is LockForm.SEMAPHORE
        where = "sites in libc" if is_in_libc else "its own call sites"
        return Check("gil_code", Status.OK, f"{where}: {words}{proof}")
    return Check(
        "gil_code",
        Status.WARNING,
        f"by {len(target.hookpoints)} functions of {target.file.mapping.path}, because "
        f"{target.fallback_reason}",
        GilCodeNotFound.remedy,
    )


def judge_holds(found: Found) -> Check:
    """Return whether full and auto mode see this process' holds, and at which cost of a trap."""
    target, name = found.target, "holds"
    if target.process.method != "sites":
        return Check(
            name,
            Status.WARNING,
            "not seen by these functions: its waits are, and how long the GIL is held is estimated",
        )
    if not target.process.shows_holds:
        unseen = _UNSEEN_HOLDS[target.build.lock_form]
        return Check(
            name,
            Status.WARNING,
            f"not seen of this lock, {unseen}; its waits are seen, and how long the lock is held "
            "is estimated",
        )
    if target.is_stepped:
        return Check(
            name,
            Status.WARNING,
            "seen in full and auto mode, at the highest cost of a trap: its calls go through slots "
            "in memory, which the kernel has to single-step",
        )
    if target.build.lock_form is LockForm.SEMAPHORE:
        words = "seen in full and auto mode, in libc, where every other semaphore traps as well"
        return Check(name, Status.OK, words)
    return Check(name, Status.OK, "seen in full and auto mode; the kernel emulates its calls")


def judge_gils(  # noqa: PLR0913 - most have defaults
    gils: list[Gil] | str,
    threads: int | None,
    kernel_threads: int,
    form: LockForm = LockForm.CONDITION,
    needing: Sequence[str] = (),
    *,
    is_asked_for: bool = False,
) -> Check:
    """Return which GILs there are; a text instead of *gils* says why they could not be read.

    *needing*: the extension modules that have made a free-threaded build switch it on, unless it
    *is_asked_for*.
    """
    if isinstance(gils, str):
        found = f"the interpreters could not be read from memory ({gils})"
        return Check(
            "gils", Status.MISSING, found, GilCodeNotFound.remedy, GilCodeNotFound.exit_code
        )
    if not gils:
        if form is LockForm.SEMAPHORE and threads:
            found = "none yet: this Python makes its lock when the first thread is started"
            return Check("gils", Status.OK, found)
        found = "none yet: Python has not been initialised in this process, or has ended"
        return Check("gils", Status.WARNING, found)
    ids = ", ".join(str(gil.interpreter_id) for gil in gils)
    which = f"interpreter{'s' * (len(gils) > 1)} {ids}"
    count = f"{len(gils)} GIL{'s' * (len(gils) > 1)}"
    return Check(
        "gils",
        Status.OK,
        f"{count} ({which}), {threads} Python threads of {kernel_threads}"
        f"{_because_of(needing, is_asked_for=is_asked_for)}",
    )


def judge_locks(found: Sequence[str] | Check) -> Check:
    """Return how locks besides the GIL are seen: what was *found*, or why they are not."""
    if isinstance(found, Check):
        return Check("locks", Status.WARNING, f"not seen: {found.found}", found.remedy)
    return Check("locks", Status.OK, f"seen with --locks: {'; '.join(found)}")


def _because_of(needing: Sequence[str], *, is_asked_for: bool) -> str:
    if is_asked_for:
        return "; on from the start, because PYTHON_GIL=1 or -X gil=1 asked for it"
    if not needing:
        return ""
    first, *others = map(printable, needing)
    because = f"; module {first} does not say that it can do without one"
    if not others:
        return because
    names = ", ".join(others[:_MOST_NAMED])
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    return f"{because}, nor do {names}{more}" if len(others) > 1 else f"{because}, nor does {names}"


def sites_count(found: Found) -> dict[str, int] | None:
    """Return how many sites of each kind there are, None with the libc method."""
    if found.sites is None:
        return None
    return {
        "waits": len(found.sites.waits),
        "yields": len(found.sites.yields),
        "acquires": len(found.sites.acquires),
        "releases": len(found.sites.releases),
    }
