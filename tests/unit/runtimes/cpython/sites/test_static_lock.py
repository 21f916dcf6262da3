"""The variables of CPython 3.6's lock, against the symbols of a real build."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import pytest

from gilscope.elf.image import ElfImage
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.sites.resolve import resolve_sites
from gilscope.runtimes.cpython.sites.static_lock import find_static_lock
from gilscope.runtimes.sites import PausePoint, Site
from support.interpreters.builds import build


@pytest.fixture(scope="module")
def content() -> bytes:
    """Return a build with symbols."""
    return build("pyenv-3.6").elf.read_bytes()


@pytest.fixture(scope="module")
def symbols() -> Mapping[str, int]:
    """Return where its symbols are."""
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed (apt install binutils)")
    command = ["nm", str(build("pyenv-3.6").elf)]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in listing.splitlines()]
    return {line[2]: int(line[0], 16) for line in lines if len(line) == 3}


def test_every_variable_is_where_its_symbol_says(
    content: bytes, symbols: Mapping[str, int]
) -> None:
    """
    The lock's, the interpreters', and the garbage collector's.
    """
    found = find_static_lock(ElfImage(content))

    assert {
        "gil_cond": found.cond,
        "gil_interval": found.interval,
        "gil_last_holder": found.last_holder,
        "gil_locked": found.locked,
        "gil_switch_number": found.switch_number,
        "switch_cond": found.switch_cond,
        "interp_head": found.interpreters,
        "collecting": found.collecting,
        "generations": found.generations,
    } == {name: symbols[name] for name in _NAMES}


_NAMES = (
    "gil_cond",
    "gil_interval",
    "gil_last_holder",
    "gil_locked",
    "gil_switch_number",
    "switch_cond",
    "interp_head",
    "collecting",
    "generations",
)


def test_a_stripped_twin_has_the_same(content: bytes) -> None:
    """
    No symbol is needed that stripping removes.
    """
    twin = build("pyenv-3.6-stripped").elf.read_bytes()

    assert find_static_lock(ElfImage(content)) == find_static_lock(ElfImage(twin))


def _patched(content: bytes, vaddr: int, old: bytes, new: bytes) -> ElfImage:
    offset = ElfImage(content).file_offset(vaddr)
    assert content[offset : offset + len(old)] == old
    return ElfImage(content[:offset] + new + content[offset + len(old) :])


def _find(content: bytes, start: int, pattern: bytes, size: int = 1024) -> int:
    offset = ElfImage(content).file_offset(start)
    return start + content.index(pattern, offset, offset + size) - offset


class _Change(NamedTuple):
    """Another byte in the first instruction of a function that begins like that."""

    function: str
    begins: str
    at: int
    byte: int


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_Change("drop_gil", "488d3d", 3, 0), r"take_gil waits for 0x[0-9a-f]+, drop_gil signals"),
        (_Change("drop_gil", "488d3d", 2, 0x35), r"what the call at 0x[0-9a-f]+ is given"),
        (_Change("drop_gil", "c705", 6, 2), r"no function that .* leads to frees the lock"),
        (_Change("take_gil", "488305", 2, 0x3D), r"0 addresses \(none\) may be the count"),
        (_Change("_PyEval_GetSwitchInterval", "488b05", 1, 0x8D), r"variable that _PyEval_Get"),
    ],
    ids=["signal", "argument", "drop", "count", "interval"],
)
def test_what_does_not_agree_is_refused(
    content: bytes, symbols: Mapping[str, int], change: _Change, reason: str
) -> None:
    """
    One byte of one instruction that is another: refused, with what was found instead.
    """
    begin = _find(content, symbols[change.function], bytes.fromhex(change.begins))
    old = ElfImage(content).read(begin, 10)
    new = old[: change.at] + bytes([change.byte]) + old[change.at + 1 :]
    changed = _patched(content, begin, old, new)

    with pytest.raises(GilCodeNotFound, match=reason):
        find_static_lock(changed)


def test_sites_of_another_function_are_refused(content: bytes) -> None:
    """
    What the probes are placed on has been found by other signs, and has to be the same.
    """
    image = ElfImage(content)
    lock, sites = find_static_lock(image), resolve_sites(image)
    lock.check(sites)

    elsewhere = (PausePoint(Site(0x1000, 0x1000), Site(0x1005, 0x1005)),)
    with pytest.raises(GilCodeNotFound, match="take_gil waits at 0x1000 or at"):
        lock.check(replace(sites, waits=elsewhere))


def test_the_garbage_collector_may_stay_unknown(content: bytes, symbols: Mapping[str, int]) -> None:
    """
    Without what says that it runs, the lock is found all the same, and no counts are made up.
    """
    start = symbols["PyGC_Collect"]
    at = _find(content, start, b"\xc7\x05")
    code = ElfImage(content).read(at, 10)
    found = find_static_lock(_patched(content, at, code, code[:6] + b"\2\0\0\0"))

    assert found.collecting is None
    assert found.cond == symbols["gil_cond"]
