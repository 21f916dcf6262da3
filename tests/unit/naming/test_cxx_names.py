"""Names of functions of C++ and Rust; what they should be is what `c++filt` says, less types."""

import random

import pytest

from gilscope.naming.cxx_names import demangled


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("_Z3addii", "add"),
        ("_ZL3addii", "add"),
        ("_ZN2at6native3addERKNS_6TensorES3_", "at::native::add"),
        ("_ZNK3foo3barEv", "foo::bar"),
        ("_ZNKR3foo3barEv", "foo::bar"),
        (
            "_ZN8pybind1112cpp_function10dispatcherEP7_objectS2_S2_",
            "pybind11::cpp_function::dispatcher",
        ),
        ("_ZN12_GLOBAL__N_14spinEl", "(anonymous namespace)::spin"),
        ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back"),
        ("_ZNSs6appendEPKc", "std::basic_string::append"),
        ("_ZSt4sortIPiEvT_S1_", "std::sort"),
        ("_ZN3foo3barILi42ELb1EJicEEEvv", "foo::bar"),
        ("_ZN3fooIPFivEA10_cM1AiEC2Ev", "foo::foo"),
        ("_ZN3fooD0Ev", "foo::~foo"),
        ("_ZN3fooplERKS_", "foo::operator+"),
        ("_ZN3foonwEm", "foo::operator new"),
        ("_Zli2_wPKc", 'operator"" _w'),
        ("_ZN3foo3barB5cxx11Ev", "foo::bar"),
        ("_ZZ4mainENKUlvE_clEv", "main::{lambda}::operator()"),
        ("_ZZN3foo3barEiE4once", "foo::bar::once"),
        ("_ZThn16_N3foo3barEv", "foo::bar"),
        ("_ZTv0_n24_N3foo3barEv", "foo::bar"),
        ("_Z4workPKcz.isra.0", "work [clone .isra.0]"),
        ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
    ],
)
def test_a_name_as_its_author_wrote_it(name: str, function: str) -> None:
    """
    With its namespaces and classes, without types of arguments and of templates.
    """
    assert function == demangled(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "_Z",
            "getenv",
            "_PyEval_EvalFrameDefault",
            "_ZN",
            "_ZNE",
            "_ZN3fo",
            "_ZN0E",
            "_Z9999a",
        ),
        *(
            "_ZN3fooI",
            "_ZN3fooIiE",
            "_ZN3fooIXLi1EEE3barEv",
            "_ZTV3foo",
            "_ZN3foocvbEv",
            "_ZN2_0E\n",
        ),
        *("_ZN3größe3barEv", "_ZN3foo\x1b[31mE", "_ZN", "_ZS_3foo", "_ZN3fooUl"),
    ],
)
def test_what_is_no_such_name_is_told_as_it_is(name: str) -> None:
    """
    Names of C, names that are cut or hostile, of data, and those with types to be computed.
    """
    assert name == demangled(name)


def test_no_name_grows_or_takes_long() -> None:
    """
    However deep it nests, and however often it refers to what was there before.
    """
    doubling = "_Z1fI" + "".join(f"1aIS{at:X}_S{at:X}_E" for at in range(150)) + "EvT_"
    deep = "_Z1fI" + "1aI" * 1300
    long = "_ZN" + "1a" * 4096 + "E"

    assert "f" == demangled(doubling)
    assert [deep, long] == [demangled(deep), demangled(long)]


def test_garbage_is_survived() -> None:
    """
    Whatever follows `_Z`; and what is told is hardly longer.
    """
    chance = random.Random(5)  # noqa: S311 - not a secret
    pieces = [
        "N",
        "E",
        "I",
        "S",
        "St",
        "S_",
        "T_",
        "J",
        "L",
        "Li",
        "Z",
        "Ul",
        "1a",
        "3foo",
        "C1",
        "_",
        "F",
        "D0",
    ]
    for _ in range(20_000):
        name = "_Z" + "".join(chance.choices(pieces, k=chance.randrange(24)))
        assert len(demangled(name)) <= 12 * len(name)
