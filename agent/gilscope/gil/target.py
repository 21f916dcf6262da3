"""Finds the interpreter in a process and everything that is needed to trace it."""

import contextlib
import re
from typing import Final, NamedTuple

from gilscope.elf.image import ElfError, ElfImage
from gilscope.errors import GilCodeNotFound
from gilscope.model.gil import Process
from gilscope.process.access import while_alive
from gilscope.process.files.code_files import code_files
from gilscope.process.files.mapped_file import MappedFile, open_mapped
from gilscope.process.procfs import ProcessStatus
from gilscope.process.view import ProcessView
from gilscope.runtimes.base import Build
from gilscope.runtimes.registry import detect
from gilscope.runtimes.site_cache import SiteCache
from gilscope.runtimes.sites import LockForm, Site, Sites
from gilscope.values import dataclass

__all__ = ["Hookpoint", "Target", "inspect"]


_LIBC = re.compile(r"(libpthread[-.][^/]*so[^/]*|libc[-.][^/]*so[^/]*|ld-musl-[^/]*)$")


@dataclass(frozen=True, slots=True)
class Hookpoint:
    """A place in a file for one of the probe's programs."""

    program: str
    offset: int


@dataclass(frozen=True, slots=True)
class Target:
    """A process that can be traced, and how."""

    build: Build
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

    @property
    def is_of_its_file(self) -> bool:
        """Whether the hookpoints are in the interpreter's own file, which nobody else runs."""
        return self.file.identity == self.build.file.identity

    def close(self) -> None:
        """Close the files."""
        self.file.close()
        self.build.close()


def inspect(view: ProcessView, cache: SiteCache, *, method: str | None = None) -> Target:
    """Return how to trace the process of *view*; *method* forces ``sites`` or ``libc``.

    Raises what `detect` raises.
    """
    with while_alive(view.pid):
        return _inspect(view, cache, method)


def _inspect(view: ProcessView, cache: SiteCache, method: str | None) -> Target:
    with contextlib.ExitStack() as closing:
        build = closing.enter_context(contextlib.closing(detect(view)))
        target = _target(build, view, cache, method)
        closing.pop_all()
    return target


def _target(build: Build, view: ProcessView, cache: SiteCache, method: str | None) -> Target:
    reason = ""
    if method != "libc":
        try:
            _refuse_shadow_stack(view.status)
            return _by_sites(build, view, cache)
        except (ElfError, GilCodeNotFound) as error:
            if method == "sites":
                raise GilCodeNotFound(str(error)) from error
            reason = str(error)
    if build.lock_form is not LockForm.CONDITION:
        raise GilCodeNotFound(reason or f"threads of Python {build.version} wait for no condition")
    try:
        return _by_libc(build, view, reason)
    except GilCodeNotFound as error:
        raise GilCodeNotFound(f"{reason}; {error}" if reason else str(error)) from error


def _refuse_shadow_stack(status: ProcessStatus) -> None:
    # The libc method probes no call: only where functions begin, and where they return to.
    if status.has_shadow_stack:
        raise GilCodeNotFound(
            "it runs with a shadow stack of return addresses (shstk), to which not every kernel "
            "adds what a probed call pushes"
        )


def _by_sites(build: Build, view: ProcessView, cache: SiteCache) -> Target:
    sites = build.sites(cache)
    file = build.site_file
    # Of those who run the same file each would have its own otherwise.
    points = file.held.facts.known(
        (build.lock_form, sites.build_id), lambda: _points(sites, build.lock_form, file.image())
    )
    return Target(
        build=build,
        process=_process(
            build,
            view,
            "sites",
            knows_causes=bool(sites.callers),
            shows_holds=bool(sites.acquires),
        ),
        file=file,
        hookpoints=points.contended,
        sites=sites,
        acquires=points.acquires,
        releases=points.releases,
        is_stepped=points.are_stepped,
    )


class _Points(NamedTuple):
    contended: tuple[Hookpoint, ...]
    acquires: tuple[Hookpoint, ...]
    releases: tuple[Hookpoint, ...]
    are_stepped: bool
    """Those of acquires and releases."""


def _points(sites: Sites, form: LockForm, image: ElfImage) -> _Points:
    acquire, release = _HOLD_PROGRAMS.get(form, ("", ""))
    machine = image.architecture
    return _Points(
        tuple(Hookpoint(program, site.offset) for program, site in _POINTS[form](sites)),
        tuple(Hookpoint(acquire, site.offset) for site in sites.acquires),
        tuple(Hookpoint(release, site.offset) for site in sites.releases),
        are_stepped=any(
            not machine.is_emulated(image.bytes_at(site.offset, machine.call_length))
            for site in (*sites.acquires, *sites.releases)
        ),
    )


# Ends before beginnings: a beginning whose end is not probed yet would never end.
def _points_of_condition(sites: Sites) -> tuple[tuple[str, Site], ...]:
    return (
        *(("on_wait_return", pause.after) for pause in sites.waits),
        *(("on_yield_return", pause.after) for pause in sites.yields),
        *(("on_forced_take", site) for site in sites.forced_takes),
        *(("on_forced_drop", site) for site in sites.forced_drops),
        *(("on_yield", pause.call) for pause in sites.yields),
        *(("on_wait", pause.call) for pause in sites.waits),
    )


def _points_of_turns(sites: Sites) -> tuple[tuple[str, Site], ...]:
    return (
        *(("on_turn_taken", pause.after) for pause in sites.waits),
        *(("on_turn_given", site) for site in sites.forced_drops),
        *(("on_turn_wait", pause.call) for pause in sites.waits),
    )


def _points_of_semaphore(sites: Sites) -> tuple[tuple[str, Site], ...]:
    return (
        *(("on_semaphore_taken", pause.after) for pause in sites.waits),
        *(("on_semaphore_sleep", site) for site in sites.sleeps),
        *(("on_semaphore_wait", pause.call) for pause in sites.waits),
    )


_POINTS: Final = {
    LockForm.CONDITION: _points_of_condition,
    LockForm.TURNS: _points_of_turns,
    LockForm.SEMAPHORE: _points_of_semaphore,
}

_HOLD_PROGRAMS: Final = {
    LockForm.CONDITION: ("on_acquire", "on_release"),
    LockForm.SEMAPHORE: ("on_semaphore_acquire", "on_semaphore_release"),
}
"""What sees a hold begin and end."""


def _by_libc(build: Build, view: ProcessView, reason: str) -> Target:
    for libc in code_files(view.mappings):
        if not _LIBC.search(libc.path):
            continue
        file = open_mapped(build.pid, libc.first)
        points = _libc_points(file.image())
        if points:
            return Target(
                build=build,
                process=_process(build, view, "libc", knows_causes=False, shows_holds=False),
                file=file,
                hookpoints=points,
                fallback_reason=reason,
            )
        file.close()
    raise GilCodeNotFound(f"process {build.pid} maps no libc that defines pthread_cond_timedwait")


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


def _process(
    build: Build, view: ProcessView, method: str, *, knows_causes: bool, shows_holds: bool
) -> Process:
    return Process(
        pid=view.pid,
        name=view.name,
        python=build.version,
        build_id=build.build_id,
        method=method,
        runtime=build.runtime,
        asks_holder=build.lock_form is LockForm.CONDITION,
        wakes_in_vain=build.lock_form is LockForm.SEMAPHORE,
        knows_causes=knows_causes,
        shows_holds=shows_holds,
        container_id=view.container_id,
        pod_uid=view.pod_uid,
    )
