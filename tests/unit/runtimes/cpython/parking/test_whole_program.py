"""Where the world is stopped and started in a file that was optimised as a whole."""

import re
import subprocess
from pathlib import Path

import pytest

from gilscope.elf.eh_frame import read_frame_table
from gilscope.elf.image import ElfImage
from gilscope.elf.instruction_starts import InstructionStarts
from gilscope.elf.plt import read_linkage
from gilscope.runtimes.cpython.parking.sites import find_park_sites
from gilscope.runtimes.cpython.parking.world import WorldSites, find_world
from gilscope.runtimes.cpython.sites.branches import scan_branches
from gilscope.runtimes.cpython.sites.functions import FunctionGroups
from support.gil.lock_program import require_tools
from support.interpreters.builds import build
from support.interpreters.from_source import original_of

_EXPORTED = (
    *("_PyParkingLot_Park", "_PyParkingLot_UnparkAll", "PyEvent_WaitTimed"),
    *("_PyRWMutex_Lock", "_PyRWMutex_RLock", "_PyRWMutex_Unlock"),
)
_WORD, _OTHER_WORD = "word(%rip)", "other_word(%rip)"
_GIVES_BACK = ("mov $-4, %rax", "lock xadd %rax, 8(%rdi)", "call _PyParkingLot_UnparkAll")
_NOTHING = ("ret",)
_LEADS_THERE = re.compile(r"(?m)^ *([0-9a-f]+):\t(?:call|j\w+) +\S+ <(st(?:op|art)_the_world)>$")
_A_FEW = 40


def _stops(word: str = _WORD) -> tuple[str, ...]:
    return (
        f"lock cmpxchg %rdx, {word}",
        f"lea {word}, %rdi",
        "mov $-1, %rcx",
        "call _PyParkingLot_Park",
        "mov $1000000, %ecx",
        "call _PyParkingLot_Park",
        "ret",
    )


def _starts(word: str = _WORD) -> tuple[str, ...]:
    return (
        "mov $-4, %rax",
        f"lock xadd %rax, {word}",
        f"lea {word}, %rdi",
        "call _PyParkingLot_UnparkAll",
        "ret",
    )


_USUAL = {
    "_PyRWMutex_RUnlock": (*_GIVES_BACK, "ret"),
    "stop": _stops(),
    "start": _starts(),
    "collect": ("call stop", "call start", "ret"),
    "fork": ("call stop", "jmp start"),
    # What sleeps and wakes, with a word of its own and for another time.
    "once": (
        f"lock cmpxchg %rdx, {_OTHER_WORD}",
        "mov $1000000, %edx",
        "call _PyParkingLot_Park",
        "mov $-1, %rax",
        "lock xadd %rax, 8(%rdi)",
        "call _PyParkingLot_UnparkAll",
        "ret",
    ),
}


def _function(name: str, instructions: tuple[str, ...]) -> str:
    lines = (f"{name}:", ".cfi_startproc", *instructions, ".cfi_endproc")
    return "\n".join(lines)


def _world(folder: Path, **functions: tuple[str, ...]) -> WorldSites | None:
    """Return what is found in a file of the usual functions, and of these in their place."""
    require_tools()
    code = {**dict.fromkeys(_EXPORTED, _NOTHING), **_USUAL, **functions}
    exported = (*_EXPORTED, "_PyRWMutex_RUnlock")
    source = "\n".join(
        (
            *(f".globl {name}\n.type {name}, @function" for name in exported),
            ".text",
            *(_function(*each) for each in code.items()),
            ".bss\nword: .skip 8\nother_word: .skip 8\n",
        )
    )
    file = folder / "whole.so"
    command = ["gcc", "-shared", "-nostdlib", "-Wl,-Bsymbolic", "-x", "assembler", "-"]
    subprocess.run([*command, "-o", str(file)], input=source, text=True, check=True)
    image = ElfImage(file.read_bytes())
    table = read_frame_table(image)
    branches = scan_branches(image, table, read_linkage(image), frozenset())
    exports = frozenset(symbol.vaddr for symbol in image.dynamic_symbols.values())
    groups = FunctionGroups(table, branches, exports, image.budget)
    starts = InstructionStarts(image, table)
    return find_world(image, table, branches, groups, starts)


def test_the_two_functions_are_known_by_their_lock(tmp_path: Path) -> None:
    """
    All calls and jumps that lead to them are found.
    """
    world = _world(tmp_path)

    assert world is not None
    assert (2, 2) == (len(world.stops), len(world.starts))
    (stop, jumped), (start, left) = world.stops, world.starts
    assert stop.vaddr + 5 == start.vaddr
    assert jumped.vaddr + 5 == left.vaddr


@pytest.mark.parametrize(
    "functions",
    [
        pytest.param({"collect": (*_stops(), "call start", "ret")}, id="a copy stops"),
        pytest.param(
            {"collect": ("mov $1000000, %ecx", "call _PyParkingLot_Park", "ret")},
            id="somebody else sleeps for a millisecond",
        ),
        pytest.param(
            {"collect": ("mov $1000000, %esi", "jmp PyEvent_WaitTimed")},
            id="or waits for an event so long",
        ),
        pytest.param({"collect": ("call stop", *_starts())}, id="a copy starts"),
        pytest.param(
            {"collect": ("call stop", *_GIVES_BACK, "ret")}, id="a copy that has the lock elsewhere"
        ),
        pytest.param(
            {"collect": (f"lea {_WORD}, %rdi", "call _PyRWMutex_RLock", "ret")},
            id="somebody else takes the lock",
        ),
        pytest.param(
            {"collect": ("call _PyRWMutex_RUnlock", "ret")}, id="somebody else gives it back"
        ),
        pytest.param(
            {"second": _stops(_OTHER_WORD), "third": _starts(_OTHER_WORD)}, id="two such locks"
        ),
        pytest.param({"start": (*_stops()[:4], *_starts())}, id="one function does both"),
        pytest.param({"start": _NOTHING}, id="nobody gives the lock back"),
        pytest.param({"stop": _NOTHING}, id="nobody takes it"),
        pytest.param(
            {"collect": ("{disp32} je stop", "call start", "ret")}, id="a jump with a condition"
        ),
        pytest.param({"collect": _NOTHING, "fork": _NOTHING}, id="nobody calls them"),
    ],
)
def test_where_anything_is_not_certain_none_is_found(
    functions: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    """
    Stops of the world are seen by who sleeps for them then.
    """
    assert _world(tmp_path, **functions) is None


def test_places_are_all_those_that_symbols_name() -> None:
    """
    In a CPython that was built so, the stripped twin has each call of the two functions.
    """
    require_tools()
    stripped = build("free-threaded-lto-3.13").elf
    command = ["objdump", "--disassemble", "--no-show-raw-insn", str(original_of(stripped))]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    calls = {(name, int(site, 16)) for site, name in _LEADS_THERE.findall(listing)}
    sites = find_park_sites(ElfImage(stripped.read_bytes()))

    assert sites.world is not None
    assert calls == {
        *(("stop_the_world", site.vaddr) for site in sites.world.stops),
        *(("start_the_world", site.vaddr) for site in sites.world.starts),
    }
    assert len(calls) > _A_FEW
    assert sites.spin is not None
    assert (6, 4, 6) == (len(sites.parks), len(sites.semaphores), len(sites.wakes))
