"""Where the world is stopped and started, in real interpreters without symbols."""

from collections.abc import Sequence

import pytest

from gilscope.elf.eh_frame import FrameTable
from gilscope.elf.image import ElfImage
from gilscope.runtimes.cpython.parking import world
from gilscope.runtimes.cpython.parking.sites import find_park_sites
from gilscope.runtimes.sites import Site
from support.interpreters.known import (
    FREE_THREADED,
    MUSL_FREE_THREADED,
    Interpreter,
    found_or_skipped,
)

_STOP, _START = "_PyEval_StopTheWorld", "_PyEval_StartTheWorld"
_CALLS_AND_JUMPS = {b"\xe8", b"\xe9", b"\xeb"}
# Those that were optimised as a whole have many more: see test_whole_program.
_NOT_AS_A_WHOLE = [
    each
    for each in (*FREE_THREADED, *MUSL_FREE_THREADED)
    if "lto" not in str(getattr(each, "id", ""))
]


def _of_function(image: ElfImage, name: str, sites: Sequence[Site]) -> list[Site]:
    function = image.dynamic_symbols[name]
    return [site for site in sites if 0 <= site.vaddr - function.vaddr < function.size]


@pytest.mark.parametrize("interpreter", _NOT_AS_A_WHOLE)
def test_each_stop_has_its_start(interpreter: Interpreter) -> None:
    """
    As many places of one kind as of the other, all of them calls or jumps, exported ones included.
    """
    image = ElfImage(interpreter.elf.read_bytes())
    sites = find_park_sites(image)
    found = sites.world

    assert found is not None
    assert 4 <= len(found.stops) == len(found.starts) <= 6
    assert {image.read(each.vaddr, 1) for each in (*found.stops, *found.starts)} <= _CALLS_AND_JUMPS
    assert f"{len(found.stops)} places that stop the world" in sites.checks[-1]
    if interpreter.minor > (3, 13):
        assert 1 == len(_of_function(image, _STOP, found.stops))
        assert 1 == len(_of_function(image, _START, found.starts))
        assert [] == _of_function(image, _START, found.stops)


def test_a_build_with_a_gil_stops_no_world() -> None:
    """
    Its functions of that name do nothing, and its checks say nothing of it.
    """
    sites = find_park_sites(ElfImage(found_or_skipped("debian-3.14").elf.read_bytes()))

    assert sites.world is None
    assert "world" not in " ".join(sites.checks)


def test_where_two_pairs_of_functions_would_do_none_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    Stops are seen by who sleeps for them then; the rest is traced all the same.
    """
    handed_over = world._handed_over  # noqa: SLF001 - what files have none of

    def two_pairs(image: ElfImage, table: FrameTable) -> dict[bytes, set[int]]:
        found = handed_over(image, table)
        wait = image.dynamic_symbols["PyEvent_Wait"].vaddr
        return {**found, b"other": {wait, image.dynamic_symbols["PyEvent_WaitTimed"].vaddr}}

    monkeypatch.setattr(world, "_handed_over", two_pairs)
    sites = find_park_sites(ElfImage(found_or_skipped("free-threaded-3.14").elf.read_bytes()))

    assert sites.world is None
    assert "stops of the world are seen where they make a thread sleep" == sites.checks[-1]


@pytest.mark.parametrize("names", ["LOCKS", "UNLOCKS"])
def test_where_others_stop_the_world_as_well_none_is_chosen(
    names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A compiler has made a part of somebody else's function: what acquires the lock then is not one.
    """
    monkeypatch.setattr(world, names, ("_PyMutex_LockTimed", "PyMutex_Unlock"))
    sites = find_park_sites(ElfImage(found_or_skipped("free-threaded-3.14").elf.read_bytes()))

    assert sites.world is None
