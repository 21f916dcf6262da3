"""How to step from code in a process to its caller, by the unwind tables of its files."""

import contextlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

from gilscope.elf.cfi import UnwindRule
from gilscope.elf.eh_frame_search import FrameRules, frame_rules
from gilscope.elf.image import ElfError, Segment
from gilscope.errors import GilscopeError
from gilscope.process.files.code_files import CodeFile, load_biases
from gilscope.process.files.code_mappings import CodeMappings
from gilscope.process.files.mapped_file import open_mapped

__all__ = ["UnwindRules"]

_MOST_RULES: Final = 16_384
_MOST_TABLES: Final = 16
"""Kept at a time: of each its sections of unwind tables, some 300 kB of a CPython."""


class _Table(NamedTuple):
    """What is kept of a file."""

    segments: Sequence[Segment]
    frames: FrameRules


class UnwindRules:
    """The rules of one process, each searched for once."""

    def __init__(self, pid: int, mappings: CodeMappings) -> None:
        self._pid = pid
        self._mappings = mappings
        self._rules: dict[int, UnwindRule | None] = {}
        self._tables: OrderedDict[str, _Table | None] = OrderedDict()
        """By path, the one used last at the end; None: it has none that can be read."""

    def at(self, address: int) -> UnwindRule | None:
        """Return how to step from the code at *address* to its caller; None: no table tells it."""
        if address not in self._rules:
            if len(self._rules) >= _MOST_RULES:
                self._rules.clear()
            self._rules[address] = self._search(address)
        return self._rules[address]

    def _search(self, address: int) -> UnwindRule | None:
        code = self._mappings.file(address)
        if code is None:
            return None
        table = self._table(code)
        if table is None:
            return None
        try:
            for bias in load_biases(table.segments, code):
                rule = table.frames.rule_at(address - bias)
                if rule is not None:
                    return rule
        except ElfError:
            self._tables[code.path] = None
        return None

    def _table(self, code: CodeFile) -> _Table | None:
        if code.path in self._tables:
            self._tables.move_to_end(code.path)
            return self._tables[code.path]
        table = None
        with contextlib.suppress(ElfError, GilscopeError, OSError):
            table = _read_table(self._pid, code)
        self._tables[code.path] = table
        read = [path for path, kept in self._tables.items() if kept is not None]
        for path in read[:-_MOST_TABLES]:
            del self._tables[path]
        return table


def _read_table(pid: int, code: CodeFile) -> _Table:
    with contextlib.closing(open_mapped(pid, code.first)) as file:
        image = file.image()
        return _Table(image.segments, frame_rules(image))
