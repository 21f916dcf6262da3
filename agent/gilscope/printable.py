"""Makes text of a traced program harmless to print."""

__all__ = ["printable"]


def printable(text: str) -> str:
    """Return *text* on one line, without what a terminal would not show but obey.

    Blanks of any kind become spaces. Control characters, those that change the direction of
    writing among them, and halves of surrogate pairs are left out.
    """
    if text.isprintable():
        return text
    spaced = (" " if character.isspace() else character for character in text)
    return "".join(character for character in spaced if character.isprintable())
