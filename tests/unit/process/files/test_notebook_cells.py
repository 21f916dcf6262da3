"""Cells of a notebook, by the names that a kernel gives to their texts."""

import json

import pytest

from gilscope.process.files.notebook_cells import Cell, cell_hash, cells_in

# What `ipykernel.compiler.get_file_name` of ipykernel 7.4.0 makes of these texts.
_HASHES = {
    "x": 32546335,
    "x=": 2285918444,
    "x=1": 2629222579,
    "x=12": 523257585,
    "x=123": 676193553,
    'print("café")': 2408671366,
}


def _notebook(*cells: object) -> bytes:
    return json.dumps({"cells": cells, "nbformat": 4}).encode()


def _code(source: object) -> dict[str, object]:
    return {"cell_type": "code", "source": source}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/tmp/ipykernel_47/1632140807.py", 1632140807),
        ("/tmp/ipykernel_47/cell.py", None),
        ("/tmp/ipykernel_47/99999999999.py", None),
        ("/srv/1632140807.py", None),
        ("<ipython-input-3-0a1b2c3d4e5f>", None),
    ],
)
def test_cell_is_known_by_its_name(file: str, expected: int | None) -> None:
    """
    Its folder has the process id of the kernel, its file a hash.
    """
    assert expected == cell_hash(file)


@pytest.mark.parametrize("text", _HASHES)
def test_cell_is_found_by_its_hash(text: str) -> None:
    """
    As a text of any length, or as a list of lines; what is no code does not count.
    """
    notebook = _notebook(
        {"cell_type": "markdown", "source": text},
        _code("other"),
        _code([text[:1], text[1:]]),
    )

    assert {_HASHES[text]: Cell(2, text.encode())} == cells_in(notebook, [_HASHES[text], 7])


def test_two_cells_with_one_text_have_no_number() -> None:
    """
    The kernel does not tell them apart either.
    """
    notebook = _notebook(_code("x=1"), _code("x=1"))

    assert {_HASHES["x=1"]: Cell(0, b"x=1")} == cells_in(notebook, _HASHES.values())


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("\nx=1", 1888327642),
        ("%time x=1", 432759849),
        ("x=1\n!ls", 4194244193),
        ("x = !ls", 638171894),
        ("x?", 2616297924),
    ],
)
def test_cell_that_was_rewritten_is_left_out(text: str, key: int) -> None:
    """
    IPython strips lines at the beginning, and makes calls of magics: lines may be others.
    """
    assert {} == cells_in(_notebook(_code(text)), [key])


@pytest.mark.parametrize(
    "notebook",
    [
        b"",
        b"\xff",
        b"[]",
        b"7",
        b"[" * 100_000,
        b'{"cells": 7}',
        b'{"cells": [7, {"cell_type": "code"}, {"cell_type": "code", "source": [7]}]}',
        b'{"cells": [{"cell_type": "code", "source": "\\ud800"}]}',
    ],
)
def test_what_is_no_notebook_has_no_cells(notebook: bytes) -> None:
    """
    Whatever else it is.
    """
    assert {} == cells_in(notebook, [7])
