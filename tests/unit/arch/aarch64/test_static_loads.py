"""The first word of static memory that an AArch64 function loads."""

import pytest

from gilscope.arch.aarch64.static_loads import static_load, word_uses

_PAGE, _LOAD = "100000f0", "110e40f9"  # adrp x16, .+0x3000; ldr x17, [x16, #0x18]
_MOVE = "e00314aa"  # mov x0, x20


@pytest.mark.parametrize("code", [_PAGE + _LOAD, _MOVE + _PAGE + _MOVE + _LOAD])
def test_a_word_is_found(code: str) -> None:
    """
    By its page and its place in that.
    """
    assert 0x415018 == static_load(bytes.fromhex(code), 0x412000)


@pytest.mark.parametrize(
    "code",
    [
        "",
        _LOAD,
        _PAGE,
        _PAGE + "40000094" + _LOAD,  # bl .+0x100
        _PAGE + "10620091" + _LOAD,  # add x16, x16, #0x18
        _PAGE + "110e40b9",  # ldr w17, [x16, #0xc]
    ],
)
def test_nothing_else_is_taken_for_one(code: str) -> None:
    """
    What may have changed meanwhile is not known.
    """
    assert static_load(bytes.fromhex(code), 0x412000) is None


def test_uses_of_words_are_not_told() -> None:
    """
    Whoever asks refuses the file then.
    """
    assert [] == list(word_uses(bytes.fromhex(_PAGE + _LOAD), 0x412000))
