"""Where caches live, and who could have put something there."""

import os
from pathlib import Path

import pytest

from gilscope.system.cache_dir import default_folder, open_trusted


def _is_trusted(folder: Path) -> bool:
    try:
        os.close(open_trusted(folder))
    except PermissionError:
        return False
    return True


def _descriptors() -> list[Path]:
    return sorted(Path("/proc/self/fd").iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in a folder, closed to others."""
    made = tmp_path / "above" / "folder"
    made.mkdir(parents=True)
    made.chmod(0o755)
    made.parent.chmod(0o755)
    return made


def _give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(path, 65534, -1, follow_symlinks=False)
    else:
        # Then all that is not root's is somebody else's.
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


def test_the_folder_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    That of XDG_CACHE_HOME, else the one in the home directory.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert Path("/somewhere/gilscope") == default_folder()
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path / ".cache" / "gilscope" == default_folder()


@pytest.mark.parametrize("home", ["/no/home", "relative"])
def test_no_folder_is_made_where_nobody_lives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str
) -> None:
    """
    A home that is not there is not made, and a relative path means nothing.
    """
    (tmp_path / "relative").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", home)

    assert Path("/var/cache/gilscope") == default_folder()


def test_what_is_returned_is_the_folder(folder: Path) -> None:
    """
    By a descriptor that a started command does not get.
    """
    descriptor = open_trusted(folder)

    assert os.path.samestat(folder.stat(), os.fstat(descriptor))
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


@pytest.mark.parametrize(
    ("mode", "mode_above", "is_trusted"),
    [
        (0o700, 0o755, True),
        (0o775, 0o755, False),
        (0o757, 0o755, False),
        (0o1777, 0o755, False),
        (0o755, 0o775, False),
        (0o755, 0o757, False),
        (0o755, 0o1777, True),
        (0o755, 0o711, True),
    ],
)
def test_nobody_else_may_write_on_the_way(
    folder: Path, mode: int, mode_above: int, *, is_trusted: bool
) -> None:
    """
    Not to the folder, and above it only where the sticky bit keeps others' names in place.
    """
    folder.chmod(mode)
    folder.parent.chmod(mode_above)

    assert is_trusted == _is_trusted(folder)


@pytest.mark.parametrize("level", [0, 1])
def test_a_folder_of_somebody_else(
    folder: Path, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    An owner can always write, on every level.
    """
    _give_away((folder, *folder.parents)[level], monkeypatch)

    assert not _is_trusted(folder)


def test_a_link_is_followed_where_it_can_be_trusted(folder: Path) -> None:
    """
    Relative ones, absolute ones, and links in what they lead to.
    """
    beside = folder.parent
    (beside / "relative").symlink_to("../above/folder")
    (beside / "absolute").symlink_to(beside / "relative")

    assert _is_trusted(beside / "relative")
    assert _is_trusted(beside / "absolute")


def test_a_link_into_an_open_folder(folder: Path, tmp_path: Path) -> None:
    """
    What a link leads through is looked at like the rest.
    """
    (tmp_path / "link").symlink_to(folder)
    folder.parent.chmod(0o777)

    assert not _is_trusted(tmp_path / "link")


def test_a_link_of_somebody_else(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    In a folder like /tmp others may set links, and choose where they lead.
    """
    (tmp_path / "link").symlink_to(folder)
    _give_away(tmp_path / "link", monkeypatch)

    assert not _is_trusted(tmp_path / "link")


def test_links_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    """
    As in the kernel.
    """
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")

    with pytest.raises(OSError, match="too many symbolic links"):
        open_trusted(tmp_path / "one")


def test_a_folder_that_is_not_there_yet(folder: Path) -> None:
    """
    Is told apart from one that is in the wrong hands.
    """
    with pytest.raises(FileNotFoundError):
        open_trusted(folder / "new")
    folder.chmod(0o777)
    assert not _is_trusted(folder / "new")


def test_no_folder(folder: Path) -> None:
    """
    A file is none, and a relative path means another folder for each who reads it.
    """
    (folder / "file").touch()

    with pytest.raises(NotADirectoryError):
        open_trusted(folder / "file")
    with pytest.raises(OSError, match="not an absolute path"):
        open_trusted(Path("folder"))


@pytest.mark.usefixtures("nothing_is_collected")
def test_no_descriptor_is_left(folder: Path) -> None:
    """
    Neither of the way there nor after a refusal.
    """
    before = _descriptors()
    os.close(open_trusted(folder))
    folder.chmod(0o777)

    assert not _is_trusted(folder)
    assert before == _descriptors()
