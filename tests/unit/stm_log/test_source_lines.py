"""Source lines of positions, as they can be found now."""

import os
from pathlib import Path

import pytest

from gilscope.stm_log.source_lines import look_up
from support.stm_log.writer import marker


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a program, which is not the working folder."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    package = tmp_path / "tree" / "tornado"
    package.mkdir(parents=True)
    (package / "web.py").write_text("import time\n\n    x = caf\u00e9()   \n")
    return tmp_path / "tree"


def test_files_are_found_where_the_log_says(folder: Path) -> None:
    """
    By their full name, or from the working folder.
    """
    file = os.fspath(folder / "tornado" / "web.py")
    Path("web.py").write_text("y = 1\n")

    assert {(file, 3): "x = caf\u00e9()"} == look_up([marker(3, file=file)])
    assert {("web.py", 1): "y = 1"} == look_up([marker(1, file="web.py")])


@pytest.mark.parametrize(
    "file", ["/home/somebody/tornado/web.py", "tornado/web.py", "<o/tornado/web.py", "<do/web.py"]
)
def test_files_are_found_below_a_folder(folder: Path, file: str) -> None:
    """
    By as much of the end of their names as is there; what is cut does not count.
    """
    folders = [folder, folder / "tornado"]

    assert {(file, 1): "import time"} == look_up([marker(1, file=file)], folders)


@pytest.mark.parametrize(
    ("file", "line"),
    [("web.py", 0), ("web.py", 2), ("web.py", 99), ("web.pyc", 1), ("<string>", 1), ("gone.py", 1)],
)
def test_nothing_is_quoted_where_nothing_is(folder: Path, file: str, line: int) -> None:
    """
    No line is made up.
    """
    assert {} == look_up([marker(line, file=file)], [folder / "tornado"])


def test_only_plain_files_are_read(folder: Path) -> None:
    """
    A log may name anything; a pipe must not keep anybody waiting.
    """
    os.mkfifo("pipe.py")
    names = ["pipe.py", "/dev/zero", os.fspath(folder), "/proc/self/mem"]

    assert {} == look_up([marker(1, file=name) for name in names])


def test_nothing_leaves_a_folder(folder: Path) -> None:
    """
    Names with two dots are not followed out of it.
    """
    (folder / "secret.py").write_text("secret\n")
    file = "x/../../secret.py"

    assert {} == look_up([marker(1, file=file)], [folder / "tornado"])
