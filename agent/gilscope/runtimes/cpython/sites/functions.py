"""Puts the parts of functions that the compiler split into hot and cold code together again."""

from collections import Counter
from typing import Final

from gilscope.elf.budget import ElfBudget
from gilscope.elf.eh_frame import FrameTable
from gilscope.runtimes.cpython.sites.branches import Branches, Crossing

__all__ = ["FunctionGroups"]

_LONGEST_CHAIN: Final = 8
"""Parts of parts that are followed; compilers make two."""
_STATE_BYTES: Final = 150


class FunctionGroups:
    """Tells to which function a piece of code belongs.

    A function is named by the address of its entry. A piece is a part of another function if
    nobody calls it, the file does not export it, and a jump enters its first instruction with the
    stack as it is in the middle of a function; a jump with the stack as at a function's entry
    is a tail call, unless it is a conditional one, which compilers do not make tail calls of.
    """

    def __init__(
        self,
        table: FrameTable,
        branches: Branches,
        exported: frozenset[int],
        budget: ElfBudget,
    ) -> None:
        """Take with *exported* the addresses that the dynamic symbol table names."""
        self._budget = budget
        self._table = table
        self._branches = branches
        self._exported = exported
        self._entries: dict[tuple[int, int], int] = {}
        self._sources: dict[int, Counter[int]] = {}
        self._callers: dict[int, dict[int | None, list[int]]] = {}

    def is_exported(self, entry: int) -> bool:
        """Return whether the dynamic symbol table names this function."""
        return entry in self._exported

    def entry_of(self, pc: int) -> int | None:
        """Return the entry of the function that holds an address; None outside all functions."""
        piece = self._table.containing(pc)
        return None if piece is None else self._entry(piece.start)

    def callers(self, entry: int) -> frozenset[int]:
        """Return the entries of the functions that call this one directly or tail-call it."""
        found = set(self._calls_by_caller(entry))
        found |= {self.entry_of(jump.site) for jump in self.tail_calls(entry)}
        return frozenset(caller for caller in found if caller is not None and caller != entry)

    def return_addresses(self, entry: int, caller: int) -> tuple[int, ...]:
        """Return the addresses behind the direct calls of one function in another one."""
        return tuple(sorted(self._calls_by_caller(entry).get(caller, ())))

    def _calls_by_caller(self, entry: int) -> dict[int | None, list[int]]:
        known = self._callers.get(entry)
        if known is None:
            known = self._callers[entry] = {}
            calls = len(self._branches.calls.get(entry, ()))
            self._budget.spend(1 + 2 * calls, _STATE_BYTES * (1 + calls))
            for pc in self._branches.calls.get(entry, ()):
                known.setdefault(self.entry_of(pc - 1), []).append(pc)
        return known

    def tail_calls(self, entry: int) -> tuple[Crossing, ...]:
        """Return the jumps from other functions to the entry of this one."""
        jumps = self._branches.crossings.get(entry, ())
        self._budget.spend(2 * len(jumps))
        return tuple(jump for jump in jumps if self.entry_of(jump.site) != entry)

    def _entry(self, start: int, depth: int = _LONGEST_CHAIN) -> int:
        """Return the entry of the function of a piece, *depth* parts of parts back at most.

        Each piece is read once for each depth, however many jumps lead to it.
        """
        known = self._entries.get((start, depth))
        if known is None:
            self._budget.spend(1, _STATE_BYTES)
            known = self._entries[start, depth] = self._find_entry(start, depth)
        return known

    def _find_entry(self, start: int, depth: int) -> int:
        if not depth or start in self._exported or start in self._branches.calls:
            return start
        owners: Counter[int] = Counter()
        for piece, jumps in self._entered_from(start).items():
            owners[self._entry(piece, depth - 1)] += jumps
        # A part that jumps back says nothing of where the piece itself belongs.
        owners.pop(start, None)
        # The lowest address wins among equals, so that the result is the same every time.
        return min(owners, key=lambda owner: (-owners[owner], owner), default=start)

    def _entered_from(self, start: int) -> Counter[int]:
        """Return the pieces that continue at the start of another one, with the number of jumps."""
        known = self._sources.get(start)
        if known is None:
            self._budget.spend(3 * len(self._branches.crossings.get(start, ())), _STATE_BYTES)
            pieces = (
                self._table.containing(jump.site)
                for jump in self._branches.crossings.get(start, ())
                if self._continues_a_function(jump)
            )
            known = self._sources[start] = Counter(
                piece.start for piece in pieces if piece is not None
            )
        return known

    def _continues_a_function(self, jump: Crossing) -> bool:
        rule = self._table.rule_at(jump.target)
        if rule is None or rule != self._table.rule_at(jump.site):
            return False
        return jump.is_conditional or rule != self._table.at_entry
