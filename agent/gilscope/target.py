"""Finds the interpreter in a process and everything that is needed to trace it."""

import contextlib
import errno
import mmap
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gilscope import procfs
from gilscope.elf import ElfError, ElfImage
from gilscope.errors import GilCodeNotFound, GilscopeError, NotPermitted, NotPython
from gilscope.gil.interpreter import Interpreter, identify
from gilscope.gil.model import Sites
from gilscope.gil.site_cache import SiteCache
from gilscope.gil.sites import resolve_sites
from gilscope.model import Process
from gilscope.printable import label, printable
from gilscope.process_name import process_name
from gilscope.procfs import Mapping
from gilscope.procmem import ProcessMemory

__all__ = [
    "Located",
    "MappedFile",
    "Target",
    "inspect",
    "locate",
    "open_mapped",
    "while_alive",
]

_LIBPYTHON = re.compile(r"lib(python|pypy)[^/]*\.so[^/]*$")
_PYTHON = re.compile(r"(python|pypy)[^/]*$")
_LIBC = re.compile(r"(libpthread[-.][^/]*so[^/]*|libc[-.][^/]*so[^/]*|ld-musl-[^/]*)$")

_COMPARED = 4096
_DIRECT_CALL = b"\xe8"

_CHANGING = (errno.ESRCH, errno.ENOENT, errno.EFAULT, errno.EIO)
"""What reading a process that is replacing its program ends in."""


@dataclass(frozen=True, slots=True)
class MappedFile:
    """One ELF file in a process, under a path that the agent can open."""

    mapping: Mapping
    """The one that begins at the file's first byte."""
    path: str
    """Leads to the very inode that is mapped, whatever stands at the process' path by now."""
    identity: tuple[int, int]
    """Device and inode of what it led to when it was compared with the memory."""

    def is_still_there(self) -> bool:
        """Return whether *path* still leads to the same file."""
        try:
            return _identity(Path(self.path).stat()) == self.identity
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class Located:
    """The interpreter of a process, before its GIL code is searched for."""

    pid: int
    file: MappedFile
    interpreter: Interpreter
    build_id: str
    load_bias: int


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


def locate(pid: int) -> Located:
    """Return the interpreter that process *pid* runs.

    Raises NotPython, NotPermitted, UnsupportedPython, NoGil or GilCodeNotFound.
    """
    with _readable(pid):
        mappings = procfs.read_maps(pid)
    if not mappings:
        raise NotPython(f"process {pid} maps no files: it is a kernel thread or has just ended")
    _refuse_deeper_namespace(pid)
    refusal: GilscopeError | None = None
    for mapping in _candidates(pid, mappings):
        try:
            file = open_mapped(pid, mapping)
            with _image(file.path) as image:
                interpreter = identify(image)
                return Located(
                    pid=pid,
                    file=file,
                    interpreter=interpreter,
                    build_id=image.build_id,
                    load_bias=file.mapping.start - image.load_address,
                )
        except (ElfError, NotPython):
            continue
        except GilscopeError as error:
            refusal = refusal or error
    if refusal is not None:
        raise type(refusal)(f"process {pid}: {refusal}", remedy=refusal.remedy) from refusal
    program = label(" ".join(procfs.read_command_line(pid)[:1])) or "?"
    raise NotPython(f"process {pid} ({program}) does not map a Python interpreter")


def _refuse_deeper_namespace(pid: int) -> None:
    # The kernel names a process to a probe in the initial pid namespace or in the process' own.
    with _readable(pid):
        depth = len(procfs.read_status(pid).namespace_pids)
    if depth > 1 and not procfs.in_initial_pid_namespace():
        raise NotPermitted(
            f"process {pid} lives in a pid namespace inside gilscope's, which is not the host's",
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


@contextlib.contextmanager
def while_alive(pid: int) -> Iterator[None]:
    """Raise NotPython for whatever fails because process *pid* ends or changes meanwhile."""
    try:
        yield
    except NotPython:
        raise
    except (OSError, GilscopeError) as error:
        if not procfs.is_alive(pid):
            raise NotPython(f"process {pid} ended while gilscope looked at it") from error
        if isinstance(error, GilscopeError) or error.errno not in _CHANGING:
            raise
        raise NotPython(
            f"process {pid} changed while gilscope looked at it ({error})",
            remedy="It may be replacing its program: try again.",
        ) from error


def _inspect(pid: int, cache: SiteCache, method: str | None) -> Target:
    located = locate(pid)
    reason = ""
    if method != "libc":
        try:
            return _by_sites(located, cache)
        except (ElfError, GilCodeNotFound) as error:
            if method == "sites":
                raise GilCodeNotFound(str(error)) from error
            reason = str(error)
    try:
        return _by_libc(located, reason)
    except GilCodeNotFound as error:
        raise GilCodeNotFound(f"{reason}; {error}" if reason else str(error)) from error


def open_mapped(pid: int, mapping: Mapping) -> MappedFile:
    """Return the file behind *mapping* under a path that leads to the mapped inode itself.

    A path may by now name another file: an upgraded interpreter, or one of the agent's own mount
    namespace. The first page in memory decides. Raises NotPermitted or NotPython.
    """
    with _readable(pid), ProcessMemory(pid) as memory:
        expected = memory.read(mapping.start, _COMPARED)
    ways: tuple[str, ...] = (
        f"/proc/{pid}/root{mapping.path}",
        # Both lead to the inode itself, deleted or not.
        f"/proc/{pid}/exe",
        f"/proc/{pid}/map_files/{mapping.start:x}-{_map_end(pid, mapping):x}",
    )
    if mapping.is_deleted:
        # What has taken its place may hold the same bytes, and nobody would run into a probe there.
        ways = ways[1:]
    denied: OSError | None = None
    for path in ways:
        try:
            with Path(path).open("rb") as file:
                if file.read(_COMPARED) == expected:
                    return MappedFile(mapping, path, _identity(os.fstat(file.fileno())))
        except PermissionError as error:
            denied = error
        except OSError:
            continue
    if denied is not None:
        raise NotPermitted(
            f"cannot open the file that process {pid} maps as {printable(mapping.path)} "
            f"({denied.strerror})",
            remedy="Grant CAP_DAC_READ_SEARCH if its folder is closed to gilscope; if the file was "
            "replaced since the process started, grant CAP_CHECKPOINT_RESTORE or restart the "
            "process. `gilscope doctor -p PID` tells which.",
        )
    raise NotPython(
        f"the file that process {pid} maps as {printable(mapping.path)} is not on disk any more",
        remedy="Restart the process, so that it runs the installed interpreter.",
    )


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _by_sites(located: Located, cache: SiteCache) -> Target:
    with _image(located.file.path) as image:
        sites = cache.load(image)
        if sites is None:
            sites = resolve_sites(image)
            cache.store(image, sites)
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


def _by_libc(located: Located, reason: str) -> Target:
    mappings = procfs.read_maps(located.pid)
    if not mappings:
        raise NotPython(f"process {located.pid} ended while gilscope looked at it")
    for mapping in mappings:
        if mapping.offset or not _LIBC.search(mapping.path):
            continue
        file = open_mapped(located.pid, mapping)
        with _image(file.path) as image:
            points = _libc_points(image)
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
    with _readable(pid):
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


def _candidates(pid: int, mappings: tuple[Mapping, ...]) -> Iterator[Mapping]:
    # The interpreter is libpython, the executable itself, or, under an explicit ld.so, neither.
    files = {mapping.path: mapping for mapping in reversed(mappings) if mapping.offset == 0}
    code = {mapping.path for mapping in mappings if mapping.executable}
    with contextlib.suppress(OSError):
        program = str(Path(f"/proc/{pid}/exe").readlink()).removesuffix(" (deleted)")
        if program in files and program in code:
            files = {program: files[program], **files}
    wanted: tuple[Callable[[str], object], ...] = (_LIBPYTHON.search, _PYTHON.search)
    ranked = [path for search in wanted for path in files if search(path)]
    for path in dict.fromkeys([*ranked, *list(files)[:1]]):
        if path in code:
            yield files[path]


def _map_end(pid: int, mapping: Mapping) -> int:
    with contextlib.suppress(OSError):
        for other in procfs.read_maps(pid):
            if other.start == mapping.start:
                return other.end
    return mapping.end


@contextlib.contextmanager
def _image(path: str) -> Iterator[ElfImage]:
    with (
        Path(path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view,
    ):
        yield ElfImage(view)


@contextlib.contextmanager
def _readable(pid: int) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, ProcessLookupError) as error:
        raise NotPython(f"there is no process {pid}") from error
    except PermissionError as error:
        raise NotPermitted(
            f"not permitted to look into process {pid} ({error.strerror})",
            remedy="Run as root, or grant CAP_SYS_PTRACE, and for a process of another user "
            f"CAP_DAC_READ_SEARCH as well. `gilscope doctor -p {pid}` tells which is missing.",
        ) from error
