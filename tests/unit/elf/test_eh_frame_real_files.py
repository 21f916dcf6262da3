"""The unwind table against pyelftools, on real files."""

from dataclasses import dataclass

import pytest
from elftools.dwarf.callframe import FDE, CFARule, RegisterRule
from elftools.elf.elffile import ELFFile

from gilscope.elf.cfi import UnwindRule
from gilscope.elf.eh_frame import FrameTable, read_frame_table
from gilscope.elf.image import ElfImage
from support.elf.real_files import REAL_FILES

_SHARE = 32
"""Of so many functions one is evaluated row by row."""
_ARGS_SIZE = 0x2E
"""An instruction of GNU's that says nothing of registers, and that pyelftools stops at."""
_RBP, _RSP, _RETURN_ADDRESS = 6, 7, 16


@dataclass
class _Both:
    ours: FrameTable
    theirs: list[FDE]


@pytest.fixture(scope="module", params=REAL_FILES)
def both(request: pytest.FixtureRequest) -> _Both:
    """Read the table of a file with both readers."""
    ours = read_frame_table(ElfImage(request.param.read_bytes()))
    with request.param.open("rb") as file:
        entries = ELFFile(file).get_dwarf_info().EH_CFI_entries()
        return _Both(ours, [entry for entry in entries if isinstance(entry, FDE)])


def _rule(row: dict[object, object]) -> UnwindRule | None:
    """Return what pyelftools says of one row; None where two registers cannot express it."""
    cfa, saved = row["cfa"], row.get(_RBP)
    assert isinstance(cfa, CFARule)
    if cfa.expr is not None or cfa.offset is None or cfa.reg not in (_RBP, _RSP):
        return None
    if _offset(row.get(_RETURN_ADDRESS)) != -8:
        return None
    if saved is not None and _offset(saved) is None:
        return None
    return UnwindRule(
        cfa_from_frame_pointer=cfa.reg == _RBP,
        cfa_offset=cfa.offset,
        saved_frame_pointer_offset=_offset(saved),
    )


def _offset(rule: object) -> int | None:
    """Return where a register is saved, from the canonical frame address; None: elsewhere."""
    if isinstance(rule, RegisterRule) and rule.type == RegisterRule.OFFSET:
        assert isinstance(rule.arg, int)
        return rule.arg
    return None


def test_functions_are_those_of_pyelftools(both: _Both) -> None:
    """
    All of them.
    """
    assert sorted(
        (fde["initial_location"], fde["initial_location"] + fde["address_range"])
        for fde in both.theirs
        if fde["address_range"]
    ) == [tuple(function) for function in both.ours.functions]


def test_rules_are_those_of_pyelftools(both: _Both) -> None:
    """
    Of a share of the functions at the first address of each row, and at the last one.
    """
    expected, found = {}, {}
    for fde in both.theirs[::_SHARE]:
        if any(instruction.opcode == _ARGS_SIZE for instruction in fde.instructions):
            continue
        rows = fde.get_decoded().table
        ends = [row["pc"] for row in rows[1:]]
        ends.append(fde["initial_location"] + fde["address_range"])
        for row, end in zip(rows, ends, strict=True):
            for pc in (row["pc"], end - 1):
                expected[pc] = _rule(row)
                found[pc] = both.ours.rule_at(pc)

    assert len(expected) > len(both.theirs) // _SHARE
    assert expected == found
