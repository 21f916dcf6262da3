"""What failures say."""

from gilscope.errors import NotPython


def test_nothing_in_a_message_is_obeyed_by_a_terminal() -> None:
    """
    Names of other programs are part of messages; lines that gilscope itself has made stay.
    """
    error = NotPython("a\033]0;PWN\ab\nc\rd", remedy="\u202ee\x9bf")

    assert ("a]0;PWNb\nc d", "ef") == (str(error), error.remedy)
