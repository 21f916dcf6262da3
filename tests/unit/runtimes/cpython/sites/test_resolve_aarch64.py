"""The resolver on stripped builds for aarch64, against their debug symbols."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from gilscope.elf.image import ElfImage
from gilscope.runtimes.cpython.debug_offsets import COOKIE
from gilscope.runtimes.cpython.detect import identify
from gilscope.runtimes.cpython.layout import layout_for
from gilscope.runtimes.cpython.sites.resolve import resolve_sites
from support.interpreters.known import FOREIGN, ForeignFile

_TIMED_WAIT, _SIGNAL, _WAIT = "timedwait", "signal", "wait"
_HEADER, _ENTRY = 32, 16
"""Bytes of the procedure linkage table's beginning, and of a stub."""
_BL = re.compile(rb"[\x94-\x97]")


class _Call(NamedTuple):
    site: int
    callee: str
    caller: str


def _calls(found: ForeignFile) -> Iterator[_Call]:
    """Yield the calls of functions on condition variables, by the order of the linkage table."""
    with found.elf.open("rb") as stream:
        elf = ELFFile(stream)
        relocations = elf.get_section_by_name(".rela.plt")
        symbols = elf.get_section_by_name(".dynsym")
        plt, text = (elf.get_section_by_name(name) for name in (".plt", ".text"))
        assert isinstance(relocations, RelocationSection)
        assert isinstance(symbols, SymbolTableSection)
        assert plt is not None
        assert text is not None
        assert plt["sh_size"] == _HEADER + _ENTRY * relocations.num_relocations()
        names = (
            str(symbols.get_symbol(one["r_info_sym"]).name)
            for one in relocations.iter_relocations()
        )
        stubs = {
            plt["sh_addr"] + _HEADER + _ENTRY * number: name.removeprefix("pthread_cond_")
            for number, name in enumerate(names)
            if name.startswith("pthread_cond_")
        }
        code, begin = text.data(), text["sh_addr"]
    for match in _BL.finditer(code[3::4]):
        position = match.start() * 4
        distance = int.from_bytes(code[position : position + 3], "little")
        distance |= (code[position + 3] & 3) << 24
        target = begin + position + 4 * (distance - (distance >> 25 << 26))
        if target in stubs:
            yield _Call(begin + position, stubs[target], _function_at(found, begin + position))


def _function_at(found: ForeignFile, address: int) -> str:
    """Return the name, without what a compiler appends."""
    names = (one.name for one in found.functions if one.start <= address < one.end)
    return next(names).partition(".")[0]


@pytest.mark.parametrize("found", FOREIGN)
def test_places_are_those_that_the_symbols_tell(found: ForeignFile) -> None:
    """
    Waits and acquires are the calls in take_gil; releases and yields those of who drops the GIL.
    """
    image = ElfImage(found.elf.read_bytes())
    sites = resolve_sites(image)
    calls = list(_calls(found))
    droppers = {
        call.caller for call in calls if call.callee == _SIGNAL and call.caller != "take_gil"
    }

    def expected(callee: str, *callers: str) -> list[int]:
        return [one.site for one in calls if one.callee == callee and one.caller in callers]

    assert expected(_TIMED_WAIT, "take_gil") == [pause.call.vaddr for pause in sites.waits]
    assert expected(_SIGNAL, "take_gil") == [site.vaddr for site in sites.acquires]
    assert expected(_SIGNAL, *droppers) == [site.vaddr for site in sites.releases]
    assert expected(_WAIT, *droppers) == [pause.call.vaddr for pause in sites.yields]
    assert len(sites.yields) > 1 < len(sites.releases)
    loop = {_function_at(found, rule.pc) for rule in sites.callers if rule.made_to_yield}
    assert loop < {"_PyEval_EvalFrameDefault", "_Py_HandlePending"}
    assert loop == {_function_at(found, site.vaddr) for site in sites.forced_drops}
    assert {"take_gil"} <= {_function_at(found, rule.pc) for rule in sites.callers}


@pytest.mark.parametrize("found", FOREIGN)
def test_the_interpreter_is_known(found: ForeignFile) -> None:
    """
    Its version is read from the file, and its lock is larger than on x86-64.
    """
    interpreter = identify(ElfImage(found.elf.read_bytes()))
    layout = layout_for(interpreter)
    folder: Path = found.elf.parent

    assert folder.name == "debian-{}.{}-arm64".format(*interpreter.minor)
    assert 96 == layout.gil_struct.switch_cond
    if interpreter.debug_offsets is not None:
        assert COOKIE == interpreter.debug_offsets[0]
