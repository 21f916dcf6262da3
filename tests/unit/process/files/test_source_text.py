"""Lines of source files, from the bytes of the files."""

import pytest

from gilscope.model.stack import Frame
from gilscope.process.files.source_text import lines_of, listing_of

_FILE = "/srv/app.py"
_CODE = b"""\
import os

class Reader(Base):
    @staticmethod
    def read(fd):
        return  os.read(fd, 1)

crunch = lambda n: sum(range(n))
"""


def _frame(function: str, first_line: int, line: int | None) -> Frame:
    return Frame(function, _FILE, first_line, line)


@pytest.mark.parametrize(
    ("frame", "line"),
    [
        (_frame("read", 5, 6), "return  os.read(fd, 1)"),
        (_frame("Reader.read", 4, 6), "return  os.read(fd, 1)"),
        (_frame("Reader", 3, 4), "@staticmethod"),
        (_frame("<module>", 1, 3), "class Reader(Base):"),
        (_frame("<module>", 0, 1), "import os"),
        (_frame("outer.<locals>.<lambda>", 8, 8), "crunch = lambda n: sum(range(n))"),
        (_frame("Reader.read.<locals>.<listcomp>", 6, 6), "return  os.read(fd, 1)"),
    ],
)
def test_line_is_found_without_its_indentation(frame: Frame, line: str) -> None:
    """
    Functions by their plain or qualified names, decorated or not, classes, modules, lambdas.
    """
    assert frame.line is not None
    assert {frame.line: line} == lines_of(_CODE, [frame])


@pytest.mark.parametrize(
    "frame",
    [
        _frame("read", 6, 6),
        _frame("rea", 5, 6),
        _frame("<lambda>", 6, 6),
        _frame("read", 99, 6),
        _frame("<listcomp>", 99, 6),
        _frame("read", 0, 6),
    ],
)
def test_file_in_which_one_function_is_elsewhere_is_not_used_at_all(frame: Frame) -> None:
    """
    It is another version of the file, in which other lines may have moved as well.
    """
    assert {} == lines_of(_CODE, [_frame("<module>", 1, 1), frame])


@pytest.mark.parametrize(("first_line", "line"), [(1, 2), (1, 10), (1, 99), (1, 0), (1, None)])
def test_no_line_is_better_than_an_empty_one(first_line: int, line: int | None) -> None:
    """
    Empty lines, lines behind the end, and lines that are not known are left out.
    """
    assert {} == lines_of(_CODE, [_frame("<module>", first_line, line)])


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("naïve = 'é'".encode(), "naïve = 'é'"),
        ("\ufeffnaïve = 'é'".encode(), "naïve = 'é'"),
        (b"# coding: latin-1\nx = '\xe9'", "x = 'é'"),
        ("# -*- coding: koi8-r -*-\nx = 'я'".encode("koi8-r"), "x = 'я'"),
        (b"x = '\xff'", None),
        (b"# coding: no-such-coding\nx = 1", None),
        (b"# coding: rot13\nx = 1", None),
        (b"# coding: idna\nx = 1", None),
        (b"", None),
    ],
)
def test_encoding_is_that_of_the_cookie(content: bytes, line: str | None) -> None:
    """
    A file whose encoding Python does not know or accept has no lines.
    """
    number = content.count(b"\n") + 1

    found = lines_of(content, [_frame("<module>", 1, number)])

    assert ({} if line is None else {number: line}) == found


def test_bytes_that_cannot_be_decoded_are_replaced() -> None:
    """
    They do not take the other lines with them.
    """
    content = b"import os\nimport sys\nx = '\xff'\ny = 1\n"

    found = lines_of(content, [_frame("<module>", 1, 3), _frame("<module>", 1, 4)])

    assert {3: "x = '\N{REPLACEMENT CHARACTER}'", 4: "y = 1"} == found


def test_lines_are_counted_as_python_counts_them() -> None:
    """
    Carriage returns end lines; form feeds and the separators of Unicode do not.
    """
    content = "a = 1\r\nb = 2\rc = 3\n\x0cd = 4\nx = '\u2028'\ne = 5\n".encode()

    frames = [_frame("<module>", 1, line) for line in range(1, 7)]

    assert {1: "a = 1", 2: "b = 2", 3: "c = 3", 4: "d = 4", 5: "x = ' '", 6: "e = 5"} == lines_of(
        content, frames
    )


def test_line_cannot_steer_a_terminal_and_does_not_fill_it() -> None:
    """
    Control characters are left out, and of a long line the first 160 characters are kept.
    """
    content = b"x = '\x1b[2J'\ny = '" + b"y" * 1000 + b"'\n"

    found = lines_of(content, [_frame("<module>", 1, 1), _frame("<module>", 1, 2)])

    assert {1: "x = '[2J'", 2: f"y = '{'y' * 155} …"} == found


def test_listing_keeps_indentation_and_empty_lines() -> None:
    """
    What is beyond the end of the file is left out.
    """
    read = _frame("read", 5, 6)

    assert {2: "", 5: "    def read(fd):", 6: "        return  os.read(fd, 1)"} == listing_of(
        _CODE, {read: [2, 5, 6, 99]}
    )
    assert {1: "        x = 1"} == listing_of(b"\tx = 1\n", {_frame("<module>", 1, 1): [1]})


def test_listing_of_another_version_is_empty() -> None:
    """
    One function that begins elsewhere is enough.
    """
    frames = {_frame("read", 5, 6): [5], _frame("write", 1, 1): [1]}

    assert {} == listing_of(_CODE, frames)


def test_listing_cannot_steer_a_terminal_and_is_bounded() -> None:
    """
    Neither by its signs nor by its length, before or after the indentation.
    """
    content = b"  x = '\x1b[2J'\n" + b" " * 1000 + b"y" * 1000
    module = _frame("<module>", 1, 1)

    found = listing_of(content, {module: [1, 2]})

    assert "\x1b" not in found[1]
    assert 330 > len(found[2])
