"""Makes text of a traced program harmless to print, and short enough to be a name."""

from typing import Final

__all__ = ["LONGEST_LABEL", "label", "printable", "printable_lines"]

LONGEST_LABEL: Final = 200
"""Characters of a name, at most."""
_KEPT_END: Final = 80
"""So much stays of the end of a name that is too long: the file and the line stand there."""


def printable(text: str) -> str:
    """Return *text* on one line, without what a terminal would not show but obey.

    Blanks of any kind become spaces. Control characters, those that change the direction of
    writing among them, and halves of surrogate pairs are left out.
    """
    if text.isprintable():
        return text
    spaced = (" " if character.isspace() else character for character in text)
    return "".join(character for character in spaced if character.isprintable())


def printable_lines(text: str) -> str:
    r"""Return *text* with each line of it printable; lines end in ``\n`` alone."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def label(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return *text* as a name, wherever it came from: printable, *longest* characters at most.

    Of what is too long, the middle is left out. This is the one place that makes labels of
    metrics, and names in tables, out of what a traced program or a file says of itself.
    """
    # What is shown is made of no more than this: a title may be megabytes long.
    shown = printable(_without_middle(text, 4 * longest))
    return _without_middle(shown, longest)


def _without_middle(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    end = longest * _KEPT_END // LONGEST_LABEL
    return f"{text[: longest - end - 1]}…{text[-end:]}"
