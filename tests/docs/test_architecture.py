"""The page about how gilscope is built, held to the package."""

import re
import runpy

from support.docs.pages import DOCS
from support.imports import MODULES
from support.paths import ROOT

_PAGE = (DOCS / "architecture.md").read_text()
_HOUSE = runpy.run_path(str(DOCS / "pictures" / "house.py"))


def test_the_picture_is_that_of_the_imports() -> None:
    """
    Drawn again, it is the same.
    """
    drawn = _HOUSE["drawn"](_HOUSE["rooms"]())

    assert (DOCS / "pictures" / "house.svg").read_text() == drawn


def test_every_room_has_its_row() -> None:
    """
    The table has all rooms, and none that is gone.
    """
    cells = re.findall(r"(?m)^\| (`.*?) \|", _PAGE)
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}

    assert set(_HOUSE["rooms"]()) == named


def test_every_module_that_is_named_is_there() -> None:
    """
    Dotted names are modules or rooms, and paths lead somewhere.
    """
    rooms = {name.rpartition(".")[0] for name in MODULES} | set(MODULES)
    dotted = re.findall(r"`([a-z_0-9]+(?:\.[a-z_0-9]+)+)`", _PAGE)
    files = {path.name for folder in ("agent", "probes") for path in (ROOT / folder).rglob("*")}

    paths = re.findall(r"`([\w.]+(?:/\w[\w.]*)+)`", _PAGE)
    gone = [path for path in paths if not any((top / path).exists() for top in _TOPS)]

    assert [] == [name for name in dotted if name not in rooms and name not in files]
    assert [] == gone


_TOPS = (ROOT, ROOT / "agent" / "gilscope")
