"""Tells which of the interpreter's own locks lies where, in builds that can do without a GIL.

Each is at a place of its own in the interpreter's state, another one in nearly every release, and
nothing in the file names it. But which exported functions take which lock is known. The first
attempt, an exchange of a byte, is compiled into the function, behind what adds the place to the
address of the interpreter:

    add  $0x2ffc8, %rdx          lea  0x2ff68(%rax), %rsi
    lock cmpxchg %cl, (%rdx)     lock cmpxchg %dl, (%rsi)     lock cmpxchg %r8b, 0x4438(%rcx,%r12)

The place of a lock is certain where two functions that take it have just one in common. That of
interned strings is taken in one function alone, which several exported ones call: it is certain
where that has no other.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from gilscope.elf.eh_frame import FrameTable, Function
from gilscope.elf.image import ElfImage
from gilscope.elf.instruction_starts import InstructionStarts
from gilscope.values import dataclass

__all__ = ["InterpreterLocks", "find_interpreter_locks"]

_TYPES: Final = ("PyType_Modified", "PyType_Watch")
_WEAK_REFERENCES: Final = ("PyWeakref_NewProxy", "PyObject_ClearWeakRefs")
_INTERNED: Final = ("_PyUnicode_InternMortal", "_PyUnicode_InternImmortal")
_WEAK_REFERENCE_LOCKS: Final = 127
"""In a row; which one it is depends on the address of the object."""

_LARGEST_FUNCTION: Final = 1 << 16
"""Bytes; those that are meant have a thousand."""
_TWO_REGISTERS: Final = rb"[\x84\x8c\x94\x9c\xa4\xac\xb4\xbc]"
"""ModRM with a distance of 32 bits where another byte has the registers."""
_AT_A_DISTANCE: Final = rb"(?:" + _TWO_REGISTERS + rb".|(?!" + _TWO_REGISTERS + rb")[\x80-\xbf])"
_EXCHANGE: Final = re.compile(
    rb"\xf0[\x40-\x4f]?\x0f\xb0(?:[\x00-\x3f]|" + _AT_A_DISTANCE + rb"(?P<place>.{4}))", re.DOTALL
)
"""``lock cmpxchg`` of a byte."""
_SUM: Final = re.compile(
    rb"(?=(?:[\x48\x49]\x81[\xc0-\xc7]|\x48\x05|[\x48-\x4f]\x8d"
    + _AT_A_DISTANCE
    + rb")(?P<place>.{4}))",
    re.DOTALL,
)
"""``add`` of a number to a register, or ``lea``."""
_BEFORE: Final = 32
"""Bytes in which that stands."""
_PLACES: Final = range(0x200, 0x80000)
"""What is nearer to a register is in something smaller; the state has some 360,000 bytes."""
_CALL: Final = re.compile(rb"(?=[\xe8\xe9](?P<distance>.{4}))", re.DOTALL)
"""Or a jump, which may be a call at the end."""


@dataclass(frozen=True, slots=True)
class InterpreterLocks:
    """Bytes from the beginning of an interpreter's state to its locks; 0: not known."""

    types: int = 0
    """Taken to change a class, and to look up what it has inherited for the first time."""
    weak_references: int = 0
    """The first one of a row; which one it is for an object is told by its address."""
    interned_strings: int = 0

    @property
    def weak_references_end(self) -> int:
        """Behind the last of the row; 0: it is not known."""
        first = self.weak_references
        return first + _WEAK_REFERENCE_LOCKS if first else 0

    @property
    def names(self) -> tuple[str, ...]:
        """Which of them are known."""
        known = {
            "types": self.types,
            "weak references": self.weak_references,
            "interned strings": self.interned_strings,
        }
        return tuple(name for name, place in known.items() if place)


def find_interpreter_locks(
    image: ElfImage, table: FrameTable, starts: InstructionStarts
) -> InterpreterLocks:
    """Return the places of the locks that are certain; raises ElfError where it is damaged."""
    functions = _Functions(image, table, starts)
    types, weak_references = (
        functions.common_place(pair, witnesses=2) for pair in (_TYPES, _WEAK_REFERENCES)
    )
    interned_strings = functions.common_place(_INTERNED, witnesses=1)
    found = InterpreterLocks(types, weak_references, interned_strings)
    others = [place for place in (types, interned_strings) if place]
    row = range(weak_references, found.weak_references_end)
    # Locks do not overlap: if these do, one of them is wrong.
    return found if len({*others, *row}) == len(others) + len(row) else InterpreterLocks()


class _Functions:
    """Exported functions of one file, with what they call that is not exported."""

    def __init__(self, image: ElfImage, table: FrameTable, starts: InstructionStarts) -> None:
        self._image = image
        self._table = table
        self._starts = starts
        self._exports = {symbol.vaddr for symbol in image.dynamic_symbols.values()}

    def common_place(self, names: tuple[str, str], *, witnesses: int) -> int:
        """Return the one place of which both functions take a lock; 0 where it is not certain.

        So many functions as *witnesses* must have it, themselves or called.
        """
        one, other = (self._places(name) for name in names)
        common = one.keys() & other.keys()
        if len(common) != 1:
            return 0
        (place,) = common
        return place if len(one[place] | other[place]) >= witnesses else 0

    def _places(self, name: str) -> Mapping[int, set[Function]]:
        """Return the places, with the functions that have each."""
        found: defaultdict[int, set[Function]] = defaultdict(set)
        symbol = self._image.dynamic_symbols.get(name)
        function = None if symbol is None else self._table.containing(symbol.vaddr)
        if function is not None:
            # Most hand over to one that is not exported.
            for each in {function, *self._called(function)}:
                for place in self._places_in(each):
                    found[place].add(each)
        return found

    def _places_in(self, function: Function) -> Iterator[int]:
        code = self._code(function)
        for exchange in self._instructions(_EXCHANGE, function, code):
            before = max(0, exchange.start() - _BEFORE)
            sums = self._instructions(_SUM, function, code, before, exchange.start())
            for each in (exchange,) if exchange["place"] else sums:
                place = int.from_bytes(each["place"], "little")
                if place in _PLACES:
                    yield place

    def _called(self, function: Function) -> Iterator[Function]:
        for call in self._instructions(_CALL, function, self._code(function)):
            distance = int.from_bytes(call["distance"], "little", signed=True)
            behind = function.start + call.start() + self._image.architecture.call_length
            entry = behind + distance
            called = self._table.containing(entry)
            if called is not None and called.start == entry and entry not in self._exports:
                yield called

    def _instructions(
        self, form: re.Pattern[bytes], function: Function, code: bytes, *within: int
    ) -> Iterator[re.Match[bytes]]:
        """Yield what has this form in *code* and begins where an instruction does."""
        for match in form.finditer(code, *within):
            self._image.budget.spend(1)
            if self._starts.is_start(function.start + match.start()):
                yield match

    def _code(self, function: Function) -> bytes:
        size = function.end - function.start
        if size > _LARGEST_FUNCTION:
            return b""
        self._image.budget.search(size)
        return self._image.read(function.start, size)
