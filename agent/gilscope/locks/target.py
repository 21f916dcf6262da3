"""Finds in a process the CPython whose locks can be traced."""

import contextlib
from typing import Final

from gilscope.elf.image import ElfError
from gilscope.errors import GilCodeNotFound, UnsupportedPython
from gilscope.model.locks import LockProcess
from gilscope.process.access import while_alive
from gilscope.process.view import ProcessView
from gilscope.runtimes.cpython.build import CPythonBuild
from gilscope.runtimes.cpython.debug_offsets import structure_sizes
from gilscope.runtimes.cpython.layout import layout_for
from gilscope.runtimes.cpython.locate import find_cpython
from gilscope.runtimes.cpython.parking.sites import ParkSites, find_park_sites
from gilscope.runtimes.interpreter_files import LikelyFiles
from gilscope.runtimes.processors import require_x86_64
from gilscope.values import Record, dataclass

__all__ = ["FIRST", "LockTarget", "inspect_locks"]

FIRST: Final = (3, 13)
"""From this version on all locks of Python are mutexes that sleep in the parking lot."""

_OBJECT_LOCK: Final = 10
"""In an object of a free-threaded build: ``ob_mutex``."""
_THREAD_STATE: Final = {(3, 13): 40, (3, 14): 44, (3, 15): 48}
"""In a thread state: ``state``."""
_CRITICAL_SECTION: Final = {(3, 13): 176, (3, 14): 176, (3, 15): 200}
"""In a thread state of a free-threaded build: ``critical_section``."""
_OWNED_RLOCKS: Final = (3, 14)
"""From this version on an RLock is a mutex, and behind that the number of its thread."""
_POINTER: Final = 8


@dataclass(frozen=True, slots=True)
class LockTarget:
    """A process whose locks can be traced, and how."""

    build: CPythonBuild
    process: LockProcess
    sites: ParkSites
    type_vaddr: int
    """Of `PyType_Type`, as the file states it."""

    @property
    def points(self) -> tuple[tuple[str, int], ...]:
        """Programs, and offsets in the file; ends first, for what has begun must end."""
        sites = self.sites
        pauses = (*sites.parks, *sites.semaphores)
        spin, world = sites.spin, sites.world
        return (
            *((("on_start", site.offset) for site in world.starts) if world else ()),
            *(("on_woken", pause.after.offset) for pause in pauses),
            *((("on_take", spin.taken.offset),) if spin else ()),
            *((("on_want", spin.wanted.offset),) if spin else ()),
            *(("on_wake", wake.offset) for wake in sites.wakes),
            *(("on_park", pause.call.offset) for pause in sites.parks),
            *(("on_semaphore", pause.call.offset) for pause in sites.semaphores),
            *((("on_stop", site.offset) for site in world.stops) if world else ()),
        )

    def record(self) -> Record:
        """Return ``struct target`` of the probes."""
        interpreter, bias = self.build.interpreter, self.build.load_bias
        runtime, interpreter_size = structure_sizes(
            interpreter.minor, interpreter.debug_offsets or ()
        )
        layout = layout_for(interpreter)
        object_type = layout.object_type
        spin = self.sites.spin
        return {
            "runtime": bias + interpreter.runtime_vaddr,
            "runtime_end": bias + interpreter.runtime_vaddr + runtime,
            "type_of_types": bias + self.type_vaddr,
            "interpreter_size": interpreter_size,
            "thread_state": _THREAD_STATE[interpreter.minor],
            "object_type": object_type,
            "object_lock": _OBJECT_LOCK if interpreter.is_free_threaded else 0,
            # An object that is a lock has its mutex behind its head; a type has a size before
            # its name.
            "lock_content": object_type + _POINTER,
            "type_name": object_type + 2 * _POINTER,
            "critical_section": (
                _CRITICAL_SECTION[interpreter.minor] if interpreter.is_free_threaded else 0
            ),
            "rlock_owner": _POINTER if interpreter.minor >= _OWNED_RLOCKS else 0,
            "gc_collecting": layout.gc_collecting,
            "spins": int(spin is not None),
            "sees_stops": int(self.sites.world is not None),
            "lock_register": 0 if spin is None else spin.lock_register,
            "types_lock": self.sites.named.types,
            "weak_reference_locks": self.sites.named.weak_references,
            "weak_reference_locks_end": self.sites.named.weak_references_end,
            "interned_lock": self.sites.named.interned_strings,
        }

    def close(self) -> None:
        """Close the file."""
        self.build.close()


def inspect_locks(view: ProcessView) -> LockTarget:
    """Return how to trace the locks of the process of *view*.

    Raises NotPython where it runs no CPython, UnsupportedPython where that is too old or not known,
    and GilCodeNotFound where its code is not understood.
    """
    with while_alive(view.pid), contextlib.ExitStack() as closing:
        with LikelyFiles(view) as files:
            build = closing.enter_context(contextlib.closing(find_cpython(files)))
            files.keep(build.file)
        interpreter = build.interpreter
        if interpreter.minor < FIRST:
            raise UnsupportedPython(
                f"locks are traced from CPython {FIRST[0]}.{FIRST[1]} on, and this is "
                f"{interpreter.version}",
                remedy="Before that a thread sleeps for any lock in the same place of libc as for "
                "the GIL, and tells nothing of the object.",
            )
        image = build.file.image()
        type_vaddr = image.default_version_symbol("PyType_Type")
        if type_vaddr is None:
            raise GilCodeNotFound("the file does not export PyType_Type")
        try:
            require_x86_64(image, "where threads sleep for locks")
            sites = find_park_sites(image)
        except ElfError as error:
            raise GilCodeNotFound(str(error)) from error
        if interpreter.is_free_threaded and sites.spin is None:
            raise GilCodeNotFound("this is a free-threaded build, and none of its functions spins")
        process = LockProcess(
            pid=view.pid,
            name=view.name,
            python=interpreter.version,
            path=build.file.mapping.path,
            build_id=build.build_id,
            checks=sites.checks,
            container_id=view.container_id,
            pod_uid=view.pod_uid,
        )
        closing.pop_all()
        return LockTarget(build, process, sites, type_vaddr)
