"""Dataclasses that are made quickly behave as the standard library's."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from gilscope.values import dataclass


def _made(decorate: Callable[..., Any], **options: bool) -> Any:
    """Return an example, of a class that *decorate* has made."""

    class Example:
        """A value."""

        first: int
        second: str = "two"
        hidden: str = dataclasses.field(default="", repr=False)
        note: str = dataclasses.field(default="", compare=False)

    Example.__qualname__ = "Example"
    return decorate(slots=True, **options)(Example)


_OPTIONS = [
    pytest.param({"frozen": True}, id="frozen"),
    pytest.param({}, id="changing"),
    pytest.param({"frozen": True, "eq": False}, id="by-identity"),
]


@pytest.mark.parametrize("options", _OPTIONS)
def test_values_are_equal_and_shown_as_those_of_the_standard_library(
    options: dict[str, bool],
) -> None:
    """
    What is not to be compared is not, nor what is not to be shown.
    """
    quick, standard = _made(dataclass, **options), _made(dataclasses.dataclass, **options)
    pairs = [((1,), (1,)), ((1,), (2,)), ((1, "a"), (1, "b")), ((1, "", "s"), (1, ""))]
    pairs += [((1, "", "", "n"), (1,)), ((1, "two", "", "n"), (1, "two"))]

    for one, other in pairs:
        assert (standard(*one) == standard(*other)) is (quick(*one) == quick(*other))
        assert repr(standard(*one)) == repr(quick(*one))
    assert quick(1) != standard(1)
    assert "Example(first=1, second='two', note='n')" == repr(quick(1, hidden="s", note="n"))


@pytest.mark.parametrize("options", _OPTIONS)
def test_frozen_values_have_a_hash_and_others_have_none(options: dict[str, bool]) -> None:
    """
    Equal ones have the same.
    """
    quick, standard = _made(dataclass, **options), _made(dataclasses.dataclass, **options)

    assert (standard.__hash__ is None) is (quick.__hash__ is None)
    if options == {"frozen": True}:
        assert 1 == len({quick(1), quick(1, note="n")})
        assert 2 == len({quick(1), quick(2)})


def test_what_a_class_defines_itself_stays() -> None:
    """
    Comparison, hash and representation.
    """

    @dataclass(frozen=True, slots=True)
    class Own:
        number: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.number % 2 == other.number % 2

        def __hash__(self) -> int:
            return self.number % 2

        def __repr__(self) -> str:
            return "own"

    assert 2 == len({Own(1), Own(2), Own(3)})
    assert "own" == repr(Own(1))


def test_an_equality_that_is_inherited_compares_what_its_class_has() -> None:
    """
    Whoever is compared first.
    """

    @dataclass(frozen=True, slots=True)
    class Base:
        one: int

    @dataclass(frozen=True, slots=True, eq=False)
    class Derived(Base):
        other: int

    assert Derived(1, 2) == Derived(1, 3)
    assert Base(1) == Base(1)


def test_a_class_without_fields_is_a_value_too() -> None:
    """
    All of them are equal.
    """

    @dataclass(frozen=True, slots=True)
    class Nothing:
        pass

    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())


def test_a_subclass_compares_what_it_adds() -> None:
    """
    And is no equal of its base.
    """

    @dataclass(frozen=True, slots=True)
    class Base:
        one: int

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        other: int

    assert Derived(1, 2) == Derived(1, 2)
    assert Derived(1, 2) != Derived(1, 3)
    assert Base(1) != Derived(1, 2)
    assert Base(1) == Base(1)
    assert Derived(1, 3) == dataclasses.replace(Derived(1, 2), other=3)
