"""Keeps the tables about STM logs until the page about overhead is written."""

from collections.abc import Sequence
from pathlib import Path

__all__ = ["FOLDER", "show_and_keep", "stm_section"]

FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "bench"
_READING = "stm.md"
_FOLLOWING = "stm-follow.md"

_ABOUT_READING = """\
A log of a program that does the same again and again, read by `gilscope stm report` without \
writing the report, and beside it `md5sum` on the same file: the median of the rounds.
*share* is what reading reaches of md5sum's speed; the bar is 0.5, and 64 MB of memory.

"""
_ABOUT_FOLLOWING = """
`gilscope stm follow` beside a process that writes its log in blocks of 4096 bytes.
*of a core* is the follower's own CPU time, with its start; the greatest lag is what it had not \
read yet at any of five checks a second.

"""
_MISSING = "Not measured on this machine: `make bench-stm` does that.\n"


def show_and_keep(table: Sequence[str], *, is_following: bool) -> None:
    """Print the lines of *table* and keep them, instead of those of an earlier measurement."""
    text = "".join(f"{line}\n" for line in table)
    print(text, end="", flush=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / (_FOLLOWING if is_following else _READING)).write_text(text)


def stm_section() -> str:
    """Return what was kept as Markdown; raises OSError where it cannot be read."""
    text = ""
    for about, name in ((_ABOUT_READING, _READING), (_ABOUT_FOLLOWING, _FOLLOWING)):
        if (FOLDER / name).exists():
            text += about + (FOLDER / name).read_text()
    return text or _MISSING
