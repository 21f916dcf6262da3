"""What failures say."""

from gilscope.errors import GilscopeError, LimitReached, NotPython, exit_codes


def test_nothing_in_a_message_is_obeyed_by_a_terminal() -> None:
    """
    Names of other programs are part of messages; lines that gilscope itself has made stay.
    """
    error = NotPython("a\033]0;PWN\ab\nc\rd", remedy="\u202ee\x9bf")

    assert ("a]0;PWNb\nc d", "ef") == (str(error), error.remedy)


def test_every_exit_code_is_explained() -> None:
    """
    One for each situation, without gaps, and in few words.
    """
    codes = exit_codes()

    assert list(range(19)) == list(codes)
    assert all(codes.values())
    assert {kind.exit_code for kind in GilscopeError.__subclasses__()} <= set(codes)
    assert "kernel or BCC missing" == codes[LimitReached.exit_code]
