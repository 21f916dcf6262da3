"""What is known of instructions, calls and jumps against a disassembler, on real files."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from gilscope.arch.x86_64.branches import LOOKAHEAD, distance_to_jump
from gilscope.arch.x86_64.emulation import STRAIGHT_LINE, distance_to_emulated, is_emulated
from gilscope.elf.eh_frame import Function, read_frame_table
from gilscope.elf.image import ElfImage
from gilscope.elf.instruction_starts import InstructionStarts
from gilscope.elf.plt import Linkage, read_linkage
from gilscope.runtimes.cpython.sites.branches import Branches, Crossing, LibraryCall, scan_branches
from support.elf.disassembly import Instruction, instructions, wrong_lengths
from support.elf.real_files import REAL_FILES

_FUNCTIONS = 200
_SMALLEST = 64
"""Bytes; a smaller one is as a rule the cold part of another function."""
_STEPPED_OVER = {"mov", "lea", "test", "cmp", "xor"}


@dataclass
class _Code:
    """A file, and the instructions of functions from everywhere in it, as capstone reads them."""

    image: ElfImage
    linkage: Linkage
    branches: Branches
    starts: frozenset[int]
    """Of all functions."""
    functions: dict[Function, list[Instruction]]
    is_in_them: Callable[[int], bool]
    """Whether an instruction of one of the functions starts at an address, by our own decoder."""

    def pairs(self) -> Iterator[tuple[Function, Instruction]]:
        """Yield every instruction with its function."""
        for function, found in self.functions.items():
            for each in found:
                yield function, each


@pytest.fixture(scope="module", params=REAL_FILES)
def code(request: pytest.FixtureRequest) -> _Code:
    """Return functions of a file."""
    image = ElfImage(request.param.read_bytes())
    table, linkage = read_frame_table(image), read_linkage(image)
    text = image.section(".text")
    assert text is not None
    large = [
        function
        for function in table.functions
        if function.end - function.start >= _SMALLEST
        and text.vaddr <= function.start < text.vaddr + text.size
    ]
    sample = large[:: len(large) // _FUNCTIONS][:_FUNCTIONS]
    functions = {function: list(instructions(image, *function)) for function in sample}
    starts = InstructionStarts(image, table)
    return _Code(
        image,
        linkage,
        scan_branches(image, table, linkage, frozenset(linkage.slots.values())),
        frozenset(table.starts),
        functions,
        lambda address: table.containing(address) in functions and starts.is_start(address),
    )


def test_lengths_are_those_of_a_disassembler(code: _Code) -> None:
    """
    Of every instruction of two hundred functions.

    All code of all interpreters is in tests/live/attach/test_instruction_lengths.py.
    """
    results = [wrong_lengths(code.image, *function) for function in code.functions]

    assert _FUNCTIONS == len(results)
    assert [] == [words for _, wrong in results for words in wrong]
    assert sum(number for number, _ in results) > 10 * _FUNCTIONS


def test_a_wrong_length_would_be_seen(code: _Code) -> None:
    """
    The comparison finds an instruction that the disassembler reads in another way.
    """
    function = next(iter(code.functions))
    number, wrong = wrong_lengths(code.image, *function, off_by=1)

    assert number == len(wrong)


def test_calls_are_those_of_a_disassembler(code: _Code) -> None:
    """
    Calls of the file's own functions, and those of other libraries' by stub or slot.

    The few whose first byte is a prefix are not taken for calls: a probe there would be inside.
    """
    own: Counter[tuple[int, int]] = Counter()
    of_libraries = set()
    for _, each in code.pairs():
        if each.target is not None and each.code[0] == 0xE8:
            if each.target in code.linkage.stubs:
                name = code.linkage.stubs[each.target]
                of_libraries.add(LibraryCall(each.address, each.size, name))
            elif each.target in code.starts:
                own[each.target, each.end] += 1
        elif each.slot in code.linkage.slots and each.code[:2] == b"\xff\x15":
            of_libraries.add(LibraryCall(each.address, each.size, code.linkage.slots[each.slot]))
    found = [
        (target, end)
        for target, ends in code.branches.calls.items()
        for end in ends
        if code.is_in_them(end - 5)
    ]

    assert len(own) > _FUNCTIONS
    assert own == Counter(found)
    assert of_libraries == {
        call for call in code.branches.library_calls if code.is_in_them(call.site)
    }


def test_jumps_between_functions_are_those_of_a_disassembler(code: _Code) -> None:
    """
    Near ones to the start of another function, and short ones at the end of one.
    """
    expected = {
        Crossing(each.address, each.target, each.mnemonic != "jmp")
        for function, each in code.pairs()
        if each.target in code.starts
        and each.target not in {*code.linkage.stubs, function.start}
        and (each.code[0] in b"\x0f\xe9" or (each.code[0] == 0xEB and each.end == function.end))
    }

    assert expected
    assert expected == {
        crossing
        for crossings in code.branches.crossings.values()
        for crossing in crossings
        if code.is_in_them(crossing.site)
    }


def test_what_looks_at_a_result_is_what_a_disassembler_sees(code: _Code) -> None:
    """
    Behind a call: its result compared with a small number or 0, or added to one, and then a jump.
    """
    expected, found = {}, {}
    for listed in code.functions.values():
        for call, comparison, jump in zip(listed, listed[1:], listed[2:], strict=False):
            if not call.mnemonic.endswith("call"):
                continue
            looks = comparison.mnemonic in ("add", "cmp") and comparison.size == 3
            looks = looks and comparison.operands.startswith("eax, ")
            looks = looks or (comparison.mnemonic, comparison.operands) == ("test", "eax, eax")
            looks = looks and jump.mnemonic in ("je", "jne")
            expected[call.end] = comparison.size if looks else 0
            found[call.end] = distance_to_jump(code.image.read(call.end, LOOKAHEAD))

    assert {0, 2, 3} == set(expected.values())
    assert expected == found


def _is_emulated(each: Instruction) -> bool:
    """Return whether a kernel emulates it: all of these without a prefix."""
    if each.target is not None:
        is_conditional = each.mnemonic.startswith("j") and each.mnemonic != "jmp"
        return each.size in ((2, 6) if is_conditional else (2, 5)) and each.code[0] != 0xE3
    return each.size == 1 and each.mnemonic in ("push", "nop")


def test_what_is_emulated_is_what_a_disassembler_sees(code: _Code) -> None:
    """
    Direct calls and jumps, nop, and push of the old registers; nothing else.
    """
    expected = {each.address: _is_emulated(each) for _, each in code.pairs()}

    assert {True, False} == set(expected.values())
    assert expected == {each.address: is_emulated(each.code) for _, each in code.pairs()}


def test_what_is_stepped_over_goes_straight_on(code: _Code) -> None:
    """
    From the instruction to the emulated one there are moves, address computations and comparisons.
    """
    number = 0
    for function, listed in code.functions.items():
        content = code.image.read(function.start, function.end - function.start)
        for index, first in enumerate(listed):
            start = first.address - function.start
            distance = distance_to_emulated(content[start : start + STRAIGHT_LINE])
            if not distance:
                continue
            end = first.address + distance
            way = listed[index : index + STRAIGHT_LINE]
            stepped = [each for each in way if each.address < end]
            behind = way[len(stepped)]
            number += 1
            assert {each.mnemonic for each in stepped} <= _STEPPED_OVER
            assert (end, True) == (behind.address, _is_emulated(behind))
            assert not any(map(_is_emulated, stepped))
    assert number > _FUNCTIONS
