"""What a message must be: words that a person can read, and that do nothing to a terminal."""

import re
import unicodedata

__all__ = ["is_of_python", "not_plain"]

_TRACEBACK = re.compile(
    r"Traceback \(most recent call last\)|^(?:[A-Za-z_.]+\.)?[A-Z]\w*(?:Error|Interrupt)(?::|$)",
    re.MULTILINE,
)
_UNBEGUN = re.compile(r"^Fatal Python error: init_", re.MULTILINE)
_RAW = {"Cc", "Cs", "Zl", "Zp"}
_DIRECTIONS = set("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c")
_SHOWN = 120


def is_of_python(text: str) -> bool:
    """Return whether the interpreter says that a signal came before it ran any of gilscope."""
    return _UNBEGUN.search(text) is not None


def not_plain(text: str) -> str:
    """Return what in *text* is no plain words, with what stands around it; empty if nothing is."""
    found = _TRACEBACK.search(text)
    if found and not is_of_python(text):
        last = text.strip().splitlines()[-1]
        return f"a traceback: {last[-_SHOWN:]!r}"
    for index, character in enumerate(text):
        if character in "\n\t":
            continue
        if unicodedata.category(character) in _RAW or character in _DIRECTIONS:
            around = text[max(0, index - 40) : index + 40]
            return f"a raw {character!r} in {around!r}"
    return ""
