"""Finds the interpreter in a process and everything that is needed to trace it."""

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gilscope import procfs
from gilscope.elf import ElfError, ElfImage
from gilscope.errors import (
    GilCodeNotFound,
    GilscopeError,
    NotPermitted,
    NotPython,
    UnsupportedPython,
)
from gilscope.gil.interpreter import Interpreter, identify
from gilscope.gil.model import Sites
from gilscope.gil.site_cache import SiteCache
from gilscope.gil.site_search import search_sites
from gilscope.gil.usage import Usage, usage_of
from gilscope.mapped_file import MappedFile, open_mapped
from gilscope.model import Process
from gilscope.printable import label, printable
from gilscope.process_access import readable, while_alive
from gilscope.process_files import CodeFile, code_files, likely_interpreters, load_biases
from gilscope.process_name import process_name
from gilscope.procfs import Mapping, ProcessStatus

__all__ = [
    "Located",
    "MappedFile",
    "Target",
    "inspect",
    "locate",
]

_LIBC = re.compile(r"(libpthread[-.][^/]*so[^/]*|libc[-.][^/]*so[^/]*|ld-musl-[^/]*)$")

_DIRECT_CALL = b"\xe8"


@dataclass(frozen=True, slots=True)
class _View:
    """A process as it was at one moment: read again, it may be another."""

    pid: int
    mappings: tuple[Mapping, ...]
    status: ProcessStatus


@dataclass(frozen=True, slots=True)
class Located:
    """The interpreter of a process, before its GIL code is searched for."""

    pid: int
    file: MappedFile
    interpreter: Interpreter
    build_id: str
    load_bias: int
    """Run-time address less the file's own, of the copy that runs."""


@dataclass(frozen=True, slots=True)
class Hookpoint:
    """A place in a file for one of the probe's programs."""

    program: str
    offset: int


@dataclass(frozen=True, slots=True)
class Target:
    """A process that can be traced, and how."""

    located: Located
    process: Process
    file: MappedFile
    """What the hookpoints lie in."""
    hookpoints: tuple[Hookpoint, ...]
    sites: Sites | None = None
    """None with the libc method."""
    acquires: tuple[Hookpoint, ...] = ()
    releases: tuple[Hookpoint, ...] = ()
    """For full mode; none with the libc method."""
    is_stepped: bool = False
    """The calls go through slots, so the kernel has to single-step the probes on them."""
    fallback_reason: str = ""
    """Libc method: why the sites could not be used."""

    def close(self) -> None:
        """Let go of the files."""
        self.file.close()
        self.located.file.close()


def locate(pid: int) -> Located:
    """Return the interpreter that process *pid* runs.

    Raises NotPython, NotPermitted, UnsupportedPython, NoGil or GilCodeNotFound.
    """
    return _locate(_view(pid))


def _view(pid: int) -> _View:
    with readable(pid):
        mappings, status = procfs.read_maps(pid), procfs.read_status(pid)
    if not mappings:
        raise NotPython(f"process {pid} maps no files: it is a kernel thread or has just ended")
    return _View(pid, mappings, status)


def _locate(view: _View) -> Located:
    pid = view.pid
    _refuse_deeper_namespace(view)
    program = ""
    with contextlib.suppress(OSError):
        program = str(Path(f"/proc/{pid}/exe").readlink()).removesuffix(" (deleted)")
    refusal: GilscopeError | None = None
    for files in likely_interpreters(code_files(view.mappings), program):
        found: list[Located] = []
        for file in files:
            try:
                found += _located(pid, file)
            except (ElfError, NotPython):
                continue
            except GilscopeError as error:
                refusal = refusal or error
        if found:
            return _the_one_in_use(found)
    if refusal is not None:
        raise type(refusal)(f"process {pid}: {refusal}", remedy=refusal.remedy) from refusal
    with readable(pid):
        command = label(" ".join(procfs.read_command_line(pid)[:1])) or "?"
    raise NotPython(f"process {pid} ({command}) does not map a Python interpreter")


def _located(pid: int, file: CodeFile) -> list[Located]:
    """Return the interpreter that *file* holds, once for each time that it is loaded."""
    opened = open_mapped(pid, file.first)
    image = opened.image()
    interpreter = identify(image)
    return [
        Located(pid, opened, interpreter, image.build_id, bias)
        for bias in load_biases(image.segments, file)
    ]


def _the_one_in_use(found: Sequence[Located]) -> Located:
    if len(found) == 1:
        return found[0]
    # A library that somebody has loaded by mistake, or for a part of the program.
    usages = [
        usage_of(each.pid, each.interpreter, each.file.mapping, each.load_bias) for each in found
    ]
    best = max(usages)
    used = [each for each, usage in zip(found, usages, strict=True) if usage is best]
    if len(used) > 1 and best is not Usage.NONE:
        names = " and ".join(
            f"CPython {each.interpreter.version} in {printable(each.file.mapping.path)}"
            for each in used
        )
        raise UnsupportedPython(
            f"process {used[0].pid} runs several Pythons at once: {names}",
            remedy="gilscope traces one Python in a process, and does not choose between them.",
        )
    return used[0]


def _refuse_deeper_namespace(view: _View) -> None:
    # The kernel names a process to a probe in the initial pid namespace or in the process' own.
    if len(view.status.namespace_pids) > 1 and not procfs.in_initial_pid_namespace():
        raise NotPermitted(
            f"process {view.pid} lives in a pid namespace inside gilscope's, which is not the "
            "host's",
            remedy="Run gilscope in the pid namespace of the process (docker: --pid "
            "container:NAME, Kubernetes: shareProcessNamespace) or of the host (--pid host, "
            "hostPID).",
        )


def inspect(pid: int, cache: SiteCache, *, method: str | None = None) -> Target:
    """Return how to trace process *pid*; *method* forces ``sites`` or ``libc``.

    Raises what `locate` raises.
    """
    with while_alive(pid):
        return _inspect(pid, cache, method)


def _inspect(pid: int, cache: SiteCache, method: str | None) -> Target:
    view = _view(pid)
    located = _locate(view)
    reason = ""
    if method != "libc":
        try:
            _refuse_shadow_stack(view.status)
            return _by_sites(located, cache)
        except (ElfError, GilCodeNotFound) as error:
            if method == "sites":
                raise GilCodeNotFound(str(error)) from error
            reason = str(error)
    try:
        return _by_libc(located, view, reason)
    except GilCodeNotFound as error:
        raise GilCodeNotFound(f"{reason}; {error}" if reason else str(error)) from error


def _refuse_shadow_stack(status: ProcessStatus) -> None:
    # The libc method probes no call: only where functions begin, and where they return to.
    if status.has_shadow_stack:
        raise GilCodeNotFound(
            "it runs with a shadow stack of return addresses (shstk), to which not every kernel "
            "adds what a probed call pushes"
        )


def _by_sites(located: Located, cache: SiteCache) -> Target:
    image = located.file.image()
    sites = cache.load(image)
    if sites is None:
        found = search_sites(located.file.held)
        sites = found.sites
        cache.store(found, sites)
    is_stepped = any(
        image.bytes_at(site.offset, 1) != _DIRECT_CALL
        for site in (*sites.acquires, *sites.releases)
    )
    # Ends before beginnings: a beginning whose end is not probed yet would never end.
    points = (
        *(("on_wait_return", pause.after) for pause in sites.waits),
        *(("on_yield_return", pause.after) for pause in sites.yields),
        *(("on_forced_take", site) for site in sites.forced_takes),
        *(("on_forced_drop", site) for site in sites.forced_drops),
        *(("on_yield", pause.call) for pause in sites.yields),
        *(("on_wait", pause.call) for pause in sites.waits),
    )
    return Target(
        located=located,
        process=_process(located, "sites", knows_causes=bool(sites.callers)),
        file=located.file,
        hookpoints=tuple(Hookpoint(program, site.offset) for program, site in points),
        sites=sites,
        acquires=tuple(Hookpoint("on_acquire", site.offset) for site in sites.acquires),
        releases=tuple(Hookpoint("on_release", site.offset) for site in sites.releases),
        is_stepped=is_stepped,
    )


def _by_libc(located: Located, view: _View, reason: str) -> Target:
    for libc in code_files(view.mappings):
        if not _LIBC.search(libc.path):
            continue
        file = open_mapped(located.pid, libc.first)
        points = _libc_points(file.image())
        if points:
            return Target(
                located=located,
                process=_process(located, "libc", knows_causes=False),
                file=file,
                hookpoints=points,
                fallback_reason=reason,
            )
    raise GilCodeNotFound(f"process {located.pid} maps no libc that defines pthread_cond_timedwait")


def _libc_points(image: ElfImage) -> tuple[Hookpoint, ...]:
    points = []
    for program, name in (
        ("on_libc_wait", "pthread_cond_timedwait"),
        ("on_libc_wait", "pthread_cond_clockwait"),
        ("on_libc_yield", "pthread_cond_wait"),
    ):
        vaddr = image.default_version_symbol(name)
        if vaddr is not None:
            points.append(Hookpoint(program, image.file_offset(vaddr)))
    return tuple(points) if len(points) > 1 else ()


def _process(located: Located, method: str, *, knows_causes: bool) -> Process:
    pid = located.pid
    container_id, pod_uid = procfs.read_cgroup(pid)
    with readable(pid):
        name = process_name(procfs.read_command_line(pid))
    return Process(
        pid=pid,
        name=name,
        python=located.interpreter.version,
        build_id=located.build_id,
        method=method,
        knows_causes=knows_causes,
        container_id=container_id,
        pod_uid=pod_uid,
    )
