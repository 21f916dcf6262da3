"""Which pieces of code belong together, on pieces written in assembler."""

import subprocess
from pathlib import Path
from typing import cast

import pytest

from gilscope.elf.cfi import UnwindRule
from gilscope.elf.eh_frame import FrameTable, Function, read_frame_table
from gilscope.elf.image import ElfImage
from gilscope.elf.plt import read_linkage
from gilscope.runtimes.cpython.sites.branches import scan_branches
from gilscope.runtimes.cpython.sites.functions import FunctionGroups
from support.gil.lock_program import require_tools

# Each piece stands far from its neighbours, so that every jump has the long form.
_PIECES = """
    .macro piece name, depth
    .skip 200, 0xcc
    .type \\name, @function
    \\name:
    .cfi_startproc
    .cfi_def_cfa_offset \\depth
    .endm

    .macro end name
    .cfi_endproc
    .size \\name, . - \\name
    .endm

    .text
    .globl api
    piece api, 8
    test %edi, %edi
    jne cold_at_entry
    call called
    jmp tail_called
    end api

    piece cold_at_entry, 8
    ret
    end cold_at_entry

    piece called, 8
    push %rbx
    .cfi_def_cfa_offset 16
    jmp cold_in_the_middle
    jmp unlike
    end called

    piece cold_in_the_middle, 16
    jmp colder
    end cold_in_the_middle

    piece colder, 16
    jmp cold_in_the_middle
    end colder

    piece unlike, 24
    ret
    end unlike

    piece tail_called, 8
    ret
    end tail_called

    piece alone, 8
    ret
    end alone

    piece neighbour_caller, 8
    nop
    .byte 0xeb, neighbour - . - 1
    end neighbour_caller
    .type neighbour, @function
    neighbour:
    .cfi_startproc
    ret
    end neighbour
    .section .note.GNU-stack, "", @progbits
"""


class _Pieces:
    """The assembled pieces by name."""

    def __init__(self, content: bytes) -> None:
        image = ElfImage(content)
        table = read_frame_table(image)
        branches = scan_branches(image, table, read_linkage(image), frozenset())
        exported = frozenset(symbol.vaddr for symbol in image.dynamic_symbols.values())
        self.groups = FunctionGroups(table, branches, exported, image.budget)
        self.addresses = {symbol.name: symbol.vaddr for symbol in image.functions}
        self._names = {vaddr: name for name, vaddr in self.addresses.items()}

    def owner(self, name: str) -> str:
        """Return the name of the function that a piece belongs to."""
        entry = self.groups.entry_of(self.addresses[name])
        assert entry is not None
        return self._names[entry]

    def callers(self, name: str) -> list[str]:
        """Return the names of the functions that call or tail-call one."""
        return sorted(self._names[entry] for entry in self.groups.callers(self.addresses[name]))


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> _Pieces:
    """Assemble the pieces."""
    require_tools()
    folder = tmp_path_factory.mktemp("pieces")
    source, library = folder / "pieces.s", folder / "pieces.so"
    source.write_text(_PIECES)
    subprocess.run(["gcc", "-shared", "-o", str(library), str(source)], check=True)
    return _Pieces(Path(library).read_bytes())


@pytest.mark.parametrize(
    ("piece", "owner"),
    [
        ("api", "api"),
        ("called", "called"),
        ("cold_at_entry", "api"),  # entered by a conditional jump
        ("cold_in_the_middle", "called"),  # entered with a frame on the stack
        ("colder", "called"),  # a part of a part, which jumps back
        ("tail_called", "tail_called"),  # entered as a function is
        ("unlike", "unlike"),  # the jump has another stack than the piece expects
        ("alone", "alone"),
        ("neighbour", "neighbour"),
    ],
)
def test_a_piece_belongs_to_the_function_that_it_continues(
    pieces: _Pieces, piece: str, owner: str
) -> None:
    """
    Jumps that keep the state of the stack make a part; calls, exports and tail calls do not.
    """
    assert owner == pieces.owner(piece)


@pytest.mark.parametrize(
    ("piece", "callers"),
    [
        ("called", ["api"]),
        ("tail_called", ["api"]),
        ("alone", []),
        ("neighbour", ["neighbour_caller"]),  # by a short jump
    ],
)
def test_callers_call_or_tail_call(pieces: _Pieces, piece: str, callers: list[str]) -> None:
    """
    Calls and tail calls, long and short ones, make a caller.
    """
    assert callers == pieces.callers(piece)


def test_an_address_outside_has_no_function(pieces: _Pieces) -> None:
    """
    Between the pieces there is no function.
    """
    assert pieces.groups.entry_of(pieces.addresses["api"] - 1) is None


def test_a_call_is_known_by_its_return_address(pieces: _Pieces) -> None:
    """
    The address behind the call instruction is returned for caller and callee, and for no others.
    """
    api, called = pieces.addresses["api"], pieces.addresses["called"]

    assert (api + 13,) == pieces.groups.return_addresses(called, api)
    assert () == pieces.groups.return_addresses(called, called)


_MESH = 40


class _CountingTable:
    """A frame table that says how often a rule was asked for, and gives up in the end."""

    def __init__(self, table: FrameTable, most: int) -> None:
        self._table = table
        self._most = most
        self.asked = 0

    def containing(self, pc: int) -> Function | None:
        return self._table.containing(pc)

    def rule_at(self, pc: int) -> UnwindRule | None:
        self.asked += 1
        assert self.asked <= self._most
        return self._table.rule_at(pc)


def test_pieces_that_all_jump_to_each_other_are_looked_at_once(tmp_path: Path) -> None:
    """
    Each jump's two rules are asked for once, however many ways lead over it.
    """
    require_tools()
    jumps = "\n".join(f"jne mesh{number}" for number in range(_MESH))
    pieces = "\n".join(
        f"piece mesh{number}, 16\n{jumps}\nend mesh{number}" for number in range(_MESH)
    )
    source, library = tmp_path / "mesh.s", tmp_path / "mesh.so"
    source.write_text(_PIECES.replace(".globl api", pieces + "\n.globl api", 1))
    subprocess.run(["gcc", "-shared", "-o", str(library), str(source)], check=True)
    image = ElfImage(library.read_bytes())
    table = read_frame_table(image)
    branches = scan_branches(image, table, read_linkage(image), frozenset())
    most = 2 * sum(len(jumps) for jumps in branches.crossings.values())
    counting = _CountingTable(table, most)
    groups = FunctionGroups(cast("FrameTable", counting), branches, frozenset(), image.budget)
    addresses = {symbol.name: symbol.vaddr for symbol in image.functions}

    owners = {groups.entry_of(addresses[f"mesh{number}"]) for number in range(_MESH)}

    assert most > _MESH * (_MESH - 1)
    assert owners <= {addresses[f"mesh{number}"] for number in range(_MESH)}
    assert counting.asked > 0
