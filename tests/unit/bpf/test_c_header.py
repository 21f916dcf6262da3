"""Numbers and records that are said in C and in Python alike."""

import pytest

from gilscope.bpf.c_header import CEnum, CStruct, Member, SharedEnum, constants, header


class _Colour(SharedEnum):
    """What it looks like.

    More of it is for Python alone.
    """

    RED = 4, "as it should be"
    PALE_GREEN = 1


def test_an_enum_says_every_number() -> None:
    """
    With its comment, whatever the order.
    """
    declared = CEnum.of(_Colour, "colour", "COLOUR_").declaration()

    assert (
        "// What it looks like.\n"
        "enum colour {\n"
        "    COLOUR_RED = 4, // as it should be\n"
        "    COLOUR_PALE_GREEN = 1,\n"
        "};" == declared
    )
    assert (4, 1) == (_Colour.RED, _Colour.PALE_GREEN)
    assert "as it should be" == _Colour.RED.comment


def test_a_struct_is_laid_out_as_it_is_declared() -> None:
    """
    One member after the other.
    """
    struct = CStruct(
        "thing", "A thing.", (Member("u64", "long_one"), Member("u32", "two", 2, "of them"))
    )

    assert (
        "// A thing.\nstruct thing {\n    u64 long_one;\n    u32 two[2]; // of them\n};"
        == struct.declaration()
    )
    assert {"long_one": 7, "two": (1, 2)} == struct.layout().unpack(
        b"\7" + bytes(7) + b"\1\0\0\0\2\0\0\0"
    )


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ((Member("u32", "one"), Member("u64", "two")), "struct odd: two needs padding before it"),
        ((Member("u64", "one"), Member("u32", "two")), "struct odd needs padding at its end"),
    ],
)
def test_padding_has_to_be_written_out(members: tuple[Member, ...], words: str) -> None:
    """
    A compiler would add it, and Python would read what lies elsewhere.
    """
    with pytest.raises(ValueError, match=words):
        CStruct("odd", "", members).layout()


def test_comments_stand_below_one_another() -> None:
    """
    As the formatter of C has them, as long as no line comes between that has none.
    """
    said = constants({"A": (1, "one"), "LONGER": (22, "two"), "NONE": (3, ""), "B": (4, "four")})

    assert (
        "#define A 1       // one\n#define LONGER 22 // two\n#define NONE 3\n#define B 4 // four"
        == said
    )
    assert header("room/abi.py", said).endswith(
        f"agent/gilscope/room/abi.py, which says the same to Python.\n\n{said}\n"
    )
