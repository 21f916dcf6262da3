"""Plain values: records, and dataclasses that are made in a third of the time.

The standard library compiles six functions for each frozen dataclass, a tenth of a millisecond
each: of some 300 classes that was half of the time in which a command is imported. Here the
constructor alone is compiled. That nobody changes a frozen one is left to the type checker, for
which these are the standard library's; constructors are faster for it as well.
"""

import dataclasses
from collections.abc import Callable, Mapping
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["Record", "dataclass"]

Record = Mapping[str, Any]
"""One key or value of a BPF map: field name to int, or to a tuple of ints for an array."""

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    _Class = TypeVar("_Class", bound=type)

    def dataclass(*, frozen: bool = False, **options: bool) -> Callable[[_Class], _Class]:
        """Return what makes a class a dataclass, with the options of the standard library's.

        Not among them are ``order`` and ``unsafe_hash``.
        """
        has_equality, is_shown = options.pop("eq", True), options.pop("repr", True)

        def made(cls: _Class) -> _Class:
            if has_equality:
                _compare(cls, is_hashed=frozen)
            if is_shown and "__repr__" not in vars(cls):
                cls.__repr__ = _represented
            return dataclasses.dataclass(eq=False, repr=False, **options)(cls)

        return made

    def _compare(cls: type, *, is_hashed: bool) -> None:
        """Have values of *cls* compared by their fields, unless it compares them itself."""

        def values_of(value: object) -> object:
            # At the first comparison all fields of the class are known.
            nonlocal values_of
            names = [each.name for each in dataclasses.fields(cls) if each.compare]
            values_of = attrgetter(*names) if names else _nothing
            return values_of(value)

        def is_equal(self: object, other: object) -> bool:
            if other.__class__ is not self.__class__:
                return NotImplemented
            return values_of(self) == values_of(other)

        def hashed(self: object) -> int:
            return hash(values_of(self))

        own = vars(cls)
        # Python itself puts None there where a class defines its equality alone.
        has_hash = "__hash__" in own and (own["__hash__"] is not None or "__eq__" not in own)
        if "__eq__" not in own:
            cls.__eq__ = is_equal
        if not has_hash:
            cls.__hash__ = hashed if is_hashed else None

    def _nothing(_value: object) -> object:
        return ()

    @recursive_repr()
    def _represented(self: object) -> str:
        shown = (
            f"{each.name}={getattr(self, each.name)!r}"
            for each in dataclasses.fields(self)
            if each.repr
        )
        return f"{self.__class__.__qualname__}({', '.join(shown)})"
