"""Takes compiled programs out of the compiler's answer, and loads them without the compiler."""

import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from gilscope.bpf import syscalls
from gilscope.bpf.commands import AttachType, ProgramType
from gilscope.bpf.compile.object import Compiled, renumbered
from gilscope.bpf.info import map_definition
from gilscope.bpf.locked_memory import with_locked_memory
from gilscope.bpf.programs import Programs

__all__ = ["compiled_from_answer", "load_compiled"]

_KINDS = {
    "uprobe": (ProgramType.KPROBE, AttachType.NONE),
    "uprobe_multi": (ProgramType.KPROBE, AttachType.TRACE_UPROBE_MULTI),
    "raw_tracepoint": (ProgramType.RAW_TRACEPOINT, AttachType.NONE),
}
"""As ``bcc_child`` has them loaded."""
_MOST_AT_ONCE = 4


def compiled_from_answer(
    answer: Mapping[str, Any],
    descriptors: Sequence[int],
    inner_of: Mapping[str, str] = MappingProxyType({}),
) -> Compiled:
    """Return what *answer*, of ``bcc_child``, says under ``compiled``, which is not null.

    *descriptors* are those that belong to it, *inner_of* is as in `Request`. Raises OSError, and
    ValueError where the programs cannot be loaded again.
    """
    found = answer["compiled"]
    *maps, memory = descriptors
    places = {number: place for place, number in enumerate(found["maps"])}
    programs, position = {}, 0
    for name, size in zip(answer["programs"], found["sizes"], strict=True):
        programs[name] = renumbered(os.pread(memory, size, position), places)
        position += size
    map_of = {name: places[number] for name, number in found["map_of"].items()}
    inner = {map_of[outer]: map_of[name] for outer, name in inner_of.items()}
    return Compiled(
        maps=tuple(
            replace(map_definition(fd), inner=inner.get(place)) for place, fd in enumerate(maps)
        ),
        programs=programs,
        tables=tuple(answer["tables"]),
        map_of=map_of,
        licence=found["licence"],
        bcc_version=answer["bcc"],
    )


def load_compiled(
    compiled: Compiled,
    kinds: Mapping[str, str],
    later: Collection[str] = (),
    *,
    is_alone: bool = True,
) -> tuple[Programs, dict[str, int]]:
    """Return new programs, and the descriptors of the maps that have a name in ``map_of``.

    *kinds* are those of the programs, by name; those in *later* are loaded when they are asked for,
    as long as these maps are open. One CPU is left to others unless it *is_alone*. Raises OSError
    or ValueError, and leaves nothing open then.
    """
    spared = 0 if is_alone else 1
    at_once = max(1, min(_MOST_AT_ONCE, len(os.sched_getaffinity(0)) - spared))
    return with_locked_memory(lambda: _load(compiled, kinds, later, at_once))


def _load(
    compiled: Compiled, kinds: Mapping[str, str], later: Collection[str], at_once: int
) -> tuple[Programs, dict[str, int]]:
    with ExitStack() as undo:
        places: dict[int, int] = {}
        # What is like the maps in a map of maps is there before that.
        for place in sorted(
            range(len(compiled.maps)), key=lambda place: compiled.maps[place].inner is not None
        ):
            definition = compiled.maps[place]
            inner_fd = 0 if definition.inner is None else places[definition.inner]
            places[place] = syscalls.create_map(definition, inner_fd)
            undo.callback(os.close, places[place])
        maps = [places[place] for place in range(len(places))]
        load = {
            name: partial(
                syscalls.load_program,
                name,
                *_KINDS[kind],
                renumbered(compiled.programs[name], places),
                compiled.licence,
            )
            for name, kind in kinds.items()
        }
        # The kernel's check of all that a program may do takes most of the time of a start.
        with ThreadPoolExecutor(at_once) as pool:
            loading = {name: pool.submit(load[name]) for name in kinds if name not in later}
        for future in loading.values():
            if future.exception() is None:
                undo.callback(os.close, future.result())
        programs = {name: future.result() for name, future in loading.items()}
        undo.pop_all()
    named = {name: maps[place] for name, place in compiled.map_of.items()}
    unnamed = set(maps) - set(named.values())
    left = {name: load[name] for name in kinds if name in later}
    if not left:
        for fd in unnamed:
            # The programs hold it.
            os.close(fd)
        unnamed.clear()
    return Programs(programs, left, unnamed), named
