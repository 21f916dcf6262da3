"""Where a file begins, ends and aborts transactions, held against what the binutils say."""

import re
import struct
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from gilscope.elf.image import ElfError, ElfImage
from gilscope.model.transactions import Library, Method
from gilscope.runtimes.stm.libitm import restart_address
from gilscope.runtimes.stm.sites import StmSites, find_sites
from support.tracing.transactions import ITM, RPYTHON, built

_EVENT = "_stm_profiling_event"
_POINTER = "stmcb_timing_event"
_RESTART = "_ZN3GTM10gtm_thread7restartENS_18gtm_restart_reasonEb"


def _symbols(program: Path) -> dict[str, int]:
    lines = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    fields = (line.split() for line in lines.splitlines())
    return {words[2]: int(words[0], 16) for words in fields if len(words) == 3}


def _sites(program: Path, pointers: dict[int, int] | None = None) -> StmSites | None:
    known = pointers or {}
    return find_sites(ElfImage(program.read_bytes()), known.get)


def _offsets(sites: StmSites | None) -> dict[str, int]:
    assert sites is not None
    return {hook.program: hook.offset for hook in sites.hooks}


def _anywhere(_: int) -> bool:
    return True


@pytest.mark.parametrize("name", ["pie", "fixed"])
def test_pointer_of_a_stripped_program_leads_to_its_events(name: str, tmp_path: Path) -> None:
    """
    The function has no name any more; the exported pointer, as the process has it, tells.
    """
    program = built(tmp_path, "rpython", RPYTHON[name])
    symbols, image = _symbols(program), ElfImage(program.read_bytes())
    subprocess.run(["strip", program], check=True)
    sites = _sites(program, {symbols[_POINTER]: symbols[_EVENT]})

    assert sites is not None
    assert (Library.RPYTHON, Method.EVENTS) == (sites.library, sites.method)
    assert {
        "on_event": image.file_offset(symbols[_EVENT]),
        "on_become_inevitable": image.file_offset(symbols["_stm_become_inevitable"]),
        "on_leave": image.file_offset(symbols["_stm_leave_noninevitable_transactional_zone"]),
    } == _offsets(sites)
    assert f"{_EVENT}: where the exported pointer {_POINTER} leads" == sites.checks[0]


def test_without_a_log_the_functions_that_are_called_are_used(tmp_path: Path) -> None:
    """
    A null pointer means that no event is logged, and the reason is among the checks.
    """
    program = built(tmp_path, "rpython", RPYTHON["pie"])
    sites = _sites(program)

    assert sites is not None
    assert Method.ENTRIES is sites.method
    assert {
        "on_start",
        "on_unregister",
        "on_abort",
        "on_leave",
        "on_become_inevitable",
    } == set(_offsets(sites))
    assert "does not log" in sites.checks[0]


@pytest.mark.parametrize("elsewhere", ["another function", "data", "another file", "inside"])
def test_pointer_that_leads_elsewhere_is_not_followed(elsewhere: str, tmp_path: Path) -> None:
    """
    Only code of the same file, and of the right name if it has one, is given events.
    """
    program = built(tmp_path, "rpython", RPYTHON["pie"])
    symbols = _symbols(program)
    address = {
        "another function": symbols["stm_abort_transaction"],
        "data": symbols[_POINTER],
        "another file": 1 << 40,
        "inside": _inside(program, symbols["stm_abort_transaction"]),
    }[elsewhere]
    sites = _sites(program, {symbols[_POINTER]: address})

    assert sites is not None
    assert Method.ENTRIES is sites.method
    assert "does not lead to" in sites.checks[0]


def _inside(program: Path, function: int) -> int:
    """Return an address within the first instruction of a function that is longer than a byte."""
    command = ["objdump", "-d", "--no-show-raw-insn", f"--start-address={function}", str(program)]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    starts = [int(line[1], 16) for line in re.finditer(r"^ +([0-9a-f]+):\t", listing, re.MULTILINE)]
    return next(start + 1 for start, following in pairwise(starts) if following > start + 1)


def _moved(program: Path, name: str) -> Path:
    """Return a copy in which an exported function's symbol points into an instruction of it."""
    function = _symbols(program)[name]
    wanted = struct.pack("<Q", function), struct.pack("<Q", _inside(program, function))
    content = program.read_bytes()
    image = ElfImage(content)
    for table in (image.section(".dynsym"), image.section(".symtab")):
        assert table is not None
        symbols = content[table.offset : table.offset + table.size].replace(*wanted)
        content = content[: table.offset] + symbols + content[table.offset + table.size :]
    moved = program.with_name("moved")
    moved.write_bytes(content)
    return moved


def test_a_name_that_points_into_an_instruction_is_not_probed(tmp_path: Path) -> None:
    """
    An event that can be done without is left out, in words; without the begin all is refused.
    """
    program = built(tmp_path, "rpython", RPYTHON["pie"])
    sites = _sites(_moved(program, "_stm_become_inevitable"))

    assert {"on_start", "on_unregister", "on_abort", "on_leave"} == set(_offsets(sites))
    assert sites is not None
    assert any("_stm_become_inevitable: left out" in check for check in sites.checks)
    with pytest.raises(ElfError, match=r"_stm_start_transaction at .*: no instruction"):
        _sites(_moved(program, "_stm_start_transaction"))


def test_program_of_unknown_version_is_given_its_three_sure_events(tmp_path: Path) -> None:
    """
    Without the functions that came with the last numbering, only the first numbers are known.
    """
    renamed = ("-Dstm_hashtable_iter=unknown",)
    program = built(tmp_path, "rpython", (*RPYTHON["pie"], *renamed))
    symbols = _symbols(program)
    sites = _sites(program, {symbols[_POINTER]: symbols[_EVENT]})

    assert sites is not None
    assert Method.EVENTS_BASIC is sites.method


_C7 = ("-D_stm_start_transaction=stm_start_transaction", "-Dstm_validate=unknown")


@pytest.mark.parametrize(
    ("renamed", "method", "numbering"),
    [
        ((), Method.EVENTS, "E16"),
        (("-Dstm_hashtable_iter=unknown",), Method.EVENTS_BASIC, "SURE"),
        (_C7[:1], Method.EVENTS_BASIC, "SURE"),
        (_C7, Method.EVENTS, "C7"),
    ],
    ids=["last C8", "C8 of 2015-06", "C8 of 2015-03", "C7"],
)
def test_what_a_program_exports_tells_what_its_numbers_stand_for(
    renamed: tuple[str, ...], method: Method, numbering: str, tmp_path: Path
) -> None:
    """
    Each generation, as it is known by names: with a log, by the numbers that are sure.
    """
    program = built(tmp_path, "rpython", (*RPYTHON["pie"], *renamed))
    symbols = _symbols(program)
    sites = _sites(program, {symbols[_POINTER]: symbols[_EVENT]})

    assert sites is not None
    assert (method, numbering) == (sites.method, sites.numbering.name)


def test_c7_without_a_log_has_no_aborts_and_says_so(tmp_path: Path) -> None:
    """
    What a conflict aborts there has no name, so none is counted rather than some of them.
    """
    sites = _sites(built(tmp_path, "rpython", (*RPYTHON["pie"], *_C7)))

    assert sites is not None
    assert Method.BEGINS is sites.method
    assert {"on_start", "on_unregister", "on_leave", "on_become_inevitable"} == set(_offsets(sites))


def test_libitm_inside_of_a_program_has_its_restarts(tmp_path: Path) -> None:
    """
    Every function of the static library is found by its name in the symbol table.
    """
    program = built(tmp_path, "itm", ITM["static"])
    symbols, image = _symbols(program), ElfImage(program.read_bytes())
    sites = _sites(program)

    assert sites is not None
    assert (Library.LIBITM, Method.RESTARTS) == (sites.library, sites.method)
    assert image.file_offset(symbols[_RESTART]) == _offsets(sites)["on_itm_restart"]
    assert image.file_offset(symbols["_ITM_beginTransaction"]) == _offsets(sites)["on_itm_begin"]


def test_failed_commit_leads_to_the_restart_without_its_name(tmp_path: Path) -> None:
    """
    In the code of both functions that commit stands what the symbol table says.
    """
    program = built(tmp_path, "itm", ITM["static"])
    symbols, image = _symbols(program), ElfImage(program.read_bytes())
    code = [
        (function.vaddr, image.read(function.vaddr, function.size))
        for function in image.functions
        if function.name in ("_ITM_commitTransaction", "_ITM_commitTransactionEH")
    ]

    assert 2 == len(code)
    assert symbols[_RESTART] == restart_address(code, is_start=_anywhere)
    assert restart_address([code[0], (code[1][0] + 1, code[1][1])], is_start=_anywhere) is None
    assert restart_address([code[0], (code[1][0], code[1][1][:-1])], is_start=_anywhere) is None
    assert restart_address([], is_start=_anywhere) is None
    assert restart_address(code, is_start=lambda _: False) is None


def test_program_that_only_uses_the_library_is_not_it(tmp_path: Path) -> None:
    """
    Names that are wanted from elsewhere, and files without any, are no sites.
    """
    assert _sites(built(tmp_path, "itm", ITM["shared"])) is None
    assert _sites(built(tmp_path, "itm", ITM["static-stripped"])) is None
