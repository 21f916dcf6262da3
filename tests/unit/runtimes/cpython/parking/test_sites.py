"""Where threads sleep for locks, on real interpreters, against their symbols."""

from pathlib import Path

import pytest

from gilscope.elf.image import ElfImage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.parking.sites import ParkSites, find_park_sites
from support.interpreters.known import FREE_THREADED, Interpreter, found_or_skipped

_ORDINARY = ("debian-3.14", "debian-3.15", "pyenv-3.13")
_SLEEPS = {"_PySemaphore_Wait", "_PySemaphore_PlatformWait", "_PyParkingLot_Park"}
_OTHER_SLEEPS = {"PyThread_acquire_lock_timed"}
_WAKES = {"_PySemaphore_Wakeup", "_PyParkingLot_Unpark", "_PyParkingLot_UnparkAll"}


def _sites(elf: Path) -> tuple[ElfImage, ParkSites]:
    image = ElfImage(elf.read_bytes())
    return image, find_park_sites(image)


def _function_at(image: ElfImage, pc: int) -> str:
    return next(
        function.name.partition(".")[0]
        for function in image.functions
        if function.vaddr <= pc < function.vaddr + function.size
    )


@pytest.mark.parametrize("interpreter", FREE_THREADED)
def test_a_free_threaded_build_spins(interpreter: Interpreter) -> None:
    """
    There are places to sleep, to wake and to spin, all of them in code that can be probed.
    """
    image, sites = _sites(interpreter.elf)

    assert 2 <= len(sites.parks) <= 6
    assert sites.wakes
    assert sites.spin is not None
    places = (sites.spin.wanted, sites.spin.taken, *(pause.after for pause in sites.parks))
    assert all(place.offset == image.file_offset(place.vaddr) for place in places)
    # The jump behind the exchange, near or short.
    assert image.read(sites.spin.taken.vaddr, 1) in {b"\x74", b"\x75", b"\x0f"}
    names = "types, weak references"
    assert f"the interpreter's own locks are known by name for {names}" in sites.checks[-2]


@pytest.mark.parametrize("name", _ORDINARY)
def test_a_build_with_a_gil_does_not_spin(name: str) -> None:
    """
    The places to sleep are the same.
    """
    _, sites = _sites(found_or_skipped(name).elf)

    assert sites.parks
    assert sites.wakes
    assert sites.spin is None


def test_places_are_in_the_functions_that_symbols_name() -> None:
    """
    Those of the parking lot, and those of the C API's locks.
    """
    image, sites = _sites(found_or_skipped("pyenv-3.13").elf)

    assert {_function_at(image, pause.call.vaddr) for pause in sites.parks} <= _SLEEPS
    assert {_function_at(image, pause.call.vaddr) for pause in sites.semaphores} <= _OTHER_SLEEPS
    assert {_function_at(image, wake.vaddr) for wake in sites.wakes} <= _WAKES


def test_a_python_without_a_parking_lot_is_refused() -> None:
    """
    CPython 3.11 has none.
    """
    with pytest.raises(GilCodeNotFound, match="0 places to sleep and 0 to wake"):
        _sites(found_or_skipped("debian-3.11").elf)
