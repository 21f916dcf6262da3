"""Opening files that somebody else has named."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gilscope.elf.image import ElfError
from gilscope.process.files import regular_file
from gilscope.process.files.regular_file import (
    MOST_BYTES,
    HeldFile,
    look_up,
    look_up_in_root,
    names_in_folder,
    opened_for_reading,
)
from gilscope.system.syscall import mount_id


def _opened(path: Path) -> HeldFile:
    looked_up = look_up(str(path))
    try:
        return HeldFile(opened_for_reading(looked_up))
    finally:
        os.close(looked_up)


def _open_descriptors(path: Path) -> int:
    status = path.stat()
    count = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            count += os.path.samestat(entry.stat(), status)
        except FileNotFoundError:
            continue  # the listing's own
    return count


@pytest.fixture
def root_fd(tmp_path: Path) -> Iterator[int]:
    """The descriptor of a folder that is the root directory of somebody."""
    descriptor = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    """
    Nobody waits for somebody to write to it.
    """
    pipe = tmp_path / "python3"
    os.mkfifo(pipe)

    with pytest.raises(OSError, match="not a regular file"):
        _opened(pipe)


@pytest.mark.parametrize("path", ["/dev/null", "/usr"])
def test_only_regular_files_are_opened(path: str) -> None:
    """
    To open a device can have effects, whatever is read of it.
    """
    with pytest.raises(OSError, match="not a regular file"):
        _opened(Path(path))


def test_a_link_on_the_way_is_refused(root_fd: int, tmp_path: Path) -> None:
    """
    A name that the kernel has written holds none: somebody has put it there since.
    """
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "python3").write_bytes(b"x")
    (tmp_path / "lib").symlink_to("real")
    (tmp_path / "python3").symlink_to("real/python3")

    for name in (b"/lib/python3", b"/python3"):
        with pytest.raises(OSError, match="symbolic links"):
            look_up_in_root(root_fd, name, follows_links=False)
    os.close(look_up_in_root(root_fd, b"/real/python3", follows_links=False))
    os.close(look_up_in_root(root_fd, b"/lib/python3", follows_links=True))


def test_no_link_of_proc_leads_out_of_a_root(root_fd: int, tmp_path: Path) -> None:
    """
    Nor do those, which lead to a file and not to a name.
    """
    (tmp_path / "way").symlink_to("/proc/self/exe")
    root = os.open("/", os.O_PATH)
    try:
        with pytest.raises(OSError, match="symbolic links"):
            look_up_in_root(root, b"/proc/self/exe", follows_links=True)
    finally:
        os.close(root)
    with pytest.raises(FileNotFoundError):
        look_up_in_root(root_fd, b"/way", follows_links=True)


def test_what_was_examined_is_what_is_opened(tmp_path: Path) -> None:
    """
    Another file of the same name, or a pipe, comes too late.
    """
    file = tmp_path / "python3"
    file.write_bytes(b"the first")
    looked_up = look_up(str(file))
    file.unlink()
    os.mkfifo(file)

    held = HeldFile(opened_for_reading(looked_up))
    os.close(looked_up)

    assert b"the first" == held.read(0, 100)


def test_those_who_hold_one_file_share_a_descriptor(tmp_path: Path) -> None:
    """
    A host runs a thousand processes of one file; the last who lets go closes it.
    """
    file = tmp_path / "python3"
    file.write_bytes(b"x")
    first, second = _opened(file), _opened(file)

    assert (first.path, 1) == (second.path, _open_descriptors(file))
    first.close()
    assert b"x" == second.read(0, 1)
    second.close()
    assert 0 == _open_descriptors(file)
    with pytest.raises(ValueError, match="not held"):
        _ = second.path


def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path) -> None:
    """
    It is a damaged file, and not the end of the agent, as a map of it would be.
    """
    file = tmp_path / "python3"
    file.write_bytes(Path("/bin/true").read_bytes())
    image = _opened(file).image()
    os.truncate(file, 100)

    with pytest.raises(ElfError, match="cut while it was read"):
        _ = image.segments
    with pytest.raises(ElfError, match="cut while it was read"):
        _ = image.digest


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    """
    A hole of terabytes costs its owner nothing, and the agent neither.
    """
    file = tmp_path / "python3"
    file.write_bytes(b"\x7fELF")
    os.truncate(file, MOST_BYTES + (1 << 20))
    held = _opened(file)

    assert not held.mentions([b"ELF"])
    with pytest.raises(ElfError, match="the file has 257 MB; at most 256 are searched"):
        held.image()


def test_words_are_found_wherever_they_lie(tmp_path: Path) -> None:
    """
    Also across the pieces in which the file is read, and at its very end.
    """
    file = tmp_path / "library"
    file.write_bytes(b"-" * ((1 << 20) - 3) + b"_stm_start" + b"-" * 100 + b"_ITM")
    held = _opened(file)

    assert [True, True, False] == [
        held.mentions([word]) for word in (b"_stm_start", b"_ITM", b"_stm_stop")
    ]


def test_folder_is_listed_up_to_a_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    A file has no names in it, and a program that may never answer is not asked.
    """
    names = ["a", "b", "c"]
    for name in names:
        (tmp_path / name).touch()
    folder, file = look_up(str(tmp_path)), look_up(str(tmp_path / "a"))

    assert (names, 2) == (
        sorted(names_in_folder(folder, "self", 9)),
        len(names_in_folder(folder, "self", 2)),
    )
    with pytest.raises(NotADirectoryError):
        names_in_folder(file, "self", 9)
    monkeypatch.setattr(regular_file, "_mount_kinds", lambda _: {mount_id(folder): "fuse.sshfs"})
    with pytest.raises(OSError, match="it lies on a FUSE file system"):
        names_in_folder(folder, "self", 9)
    os.close(folder)
    os.close(file)


@pytest.mark.parametrize("refusal", [errno.ENOSYS, errno.EPERM])
def test_where_statx_is_refused_the_mount_is_known_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refusal: int
) -> None:
    """
    A filter that is older than the call refuses it: what lies on FUSE is still known by its mount.
    """
    file = tmp_path / "python3"
    file.write_bytes(b"")
    looked_up = look_up(str(file))
    mount = mount_id(looked_up)
    os.close(looked_up)
    assert mount is not None

    def refused(_: int) -> None:
        raise OSError(refusal, os.strerror(refusal))

    monkeypatch.setattr(regular_file, "mount_id", refused)
    _opened(file)
    monkeypatch.setattr(regular_file, "_mount_kinds", lambda _: {mount: "fuse.sshfs"})
    with pytest.raises(OSError, match="it lies on a FUSE file system"):
        _opened(file)
