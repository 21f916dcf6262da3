"""Which files a process has mapped as code, and where."""

import pytest

from gilscope.elf.image import ElfError, Segment
from gilscope.process.files.code_files import CodeFile, code_files, likely_interpreters, load_biases
from gilscope.process.procfs import parse_maps

_LIBRARY = "/usr/lib/libpython3.11.so.1.0"
_SEGMENTS = (
    Segment(0, 0, 0x4F000, 0x4F000, is_executable=False),
    Segment(0x4F000, 0x4F000, 0x1000F, 0x1000F, is_executable=True),
    Segment(0x61CD8, 0x60CD8, 0x100, 0x9000, is_executable=False),
)


def _files(*lines: str) -> tuple[CodeFile, ...]:
    return code_files(parse_maps("".join(f"{line}\n" for line in lines)))


def _loaded(start: int, inode: int = 5, path: str = _LIBRARY) -> list[str]:
    return [
        f"{start:x}-{start + 0x4F000:x} r--p 00000000 fd:00 {inode} {path}",
        f"{start + 0x4F000:x}-{start + 0x60000:x} r-xp 0004f000 fd:00 {inode} {path}",
        f"{start + 0x61000:x}-{start + 0x62000:x} rw-p 00060000 fd:00 {inode} {path}",
    ]


def test_a_library_that_is_read_as_well() -> None:
    """
    A symbolizer or an unwinder maps its own libpython once more: where it runs is what counts.
    """
    again = f"10000000-10060000 r--p 00000000 fd:00 5 {_LIBRARY}"
    (file,) = _files(again, *_loaded(0x7F0000000000))

    assert (0x10000000, (0x7F0000000000,)) == (file.first.start, load_biases(_SEGMENTS, file))


def test_a_library_that_is_loaded_twice() -> None:
    """
    By dlmopen, with two sets of data: both are candidates.
    """
    (file,) = _files(*_loaded(0x7F0000000000), *_loaded(0x7F1000000000))

    assert (0x7F0000000000, 0x7F1000000000) == load_biases(_SEGMENTS, file)


def test_text_whose_rights_were_changed_in_part() -> None:
    """
    A mapping that was split is one copy of the code, not three.
    """
    start = 0x7F0000000000
    (file,) = _files(
        f"{start:x}-{start + 0x4F000:x} r--p 00000000 fd:00 5 {_LIBRARY}",
        f"{start + 0x4F000:x}-{start + 0x50000:x} r-xp 0004f000 fd:00 5 {_LIBRARY}",
        f"{start + 0x50000:x}-{start + 0x51000:x} rwxp 00050000 fd:00 5 {_LIBRARY}",
        f"{start + 0x51000:x}-{start + 0x60000:x} r-xp 00051000 fd:00 5 {_LIBRARY}",
    )

    assert (start,) == load_biases(_SEGMENTS, file)


def test_a_file_that_is_not_loaded_as_it_says() -> None:
    """
    Then nobody knows where its data is.
    """
    (file,) = _files(
        f"10000000-10001000 r--p 00000000 fd:00 5 {_LIBRARY}",
        f"10001000-10002000 r-xp 00200000 fd:00 5 {_LIBRARY}",
    )

    with pytest.raises(ElfError, match="is not loaded as its program headers say"):
        load_biases(_SEGMENTS, file)


def test_files_of_one_name_are_told_apart() -> None:
    """
    One was mounted or moved over the other.
    """
    files = _files(*_loaded(0x7F0000000000), *_loaded(0x7F1000000000, inode=6))

    assert [5, 6] == [file.first.inode for file in files]


def test_where_an_interpreter_is_looked_for_first() -> None:
    """
    In the program, then in what is called a Python; in extension modules only if need be.
    """
    files = _files(
        *_loaded(0x7F0000000000, 1, "/usr/lib/libc.so.6"),
        *_loaded(0x7F1000000000, 2, "/app/_x.cpython-311-x86_64-linux-gnu.so"),
        *_loaded(0x7F2000000000, 3),
        *_loaded(0x7F3000000000, 4, "/usr/bin/server"),
    )

    likely, odd = likely_interpreters(files, "/usr/bin/server")

    assert ["/usr/bin/server", _LIBRARY] == [file.path for file in likely]
    assert ["/app/_x.cpython-311-x86_64-linux-gnu.so"] == [file.path for file in odd]


def test_a_thousand_false_interpreters() -> None:
    """
    A few files are opened in search of an interpreter, however many there are.
    """
    files = _files(*(line for i in range(1, 1000) for line in _loaded(i << 32, i, f"/x/python{i}")))

    likely, odd = likely_interpreters(files, "/x/python5")

    assert ("/x/python5", 8, 64) == (likely[0].path, len(likely), len(odd))
