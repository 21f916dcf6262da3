"""Tests of the order in which kernel headers are looked for."""

from pathlib import Path

import pytest

from gilscope.bpf.compile.headers import find_headers, find_system_headers

_RELEASE = "6.18.1-test"


def _make_tree(tree: Path, *, complete: bool = True) -> Path:
    for file in ("include/linux/kconfig.h", "include/generated/autoconf.h")[: 2 if complete else 1]:
        (tree / file).parent.mkdir(parents=True)
        (tree / file).touch()
    return tree


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """Return the folder in which headers would be shipped; it does not exist yet."""
    return tmp_path / "shipped"


def test_a_tree_named_by_the_user_comes_first_and_is_not_inspected(
    tmp_path: Path, shipped: Path
) -> None:
    """
    BCC_KERNEL_SOURCE wins over everything, also when that folder does not exist.
    """
    _make_tree(shipped)
    environ = {"BCC_KERNEL_SOURCE": "/nowhere"}

    found = find_headers(environ, _RELEASE, shipped=(shipped,), root=tmp_path)

    assert Path("/nowhere") == found


def test_an_empty_variable_counts_as_unset(tmp_path: Path, shipped: Path) -> None:
    """
    An empty BCC_KERNEL_SOURCE does not hide the shipped headers.
    """
    _make_tree(shipped)

    found = find_headers({"BCC_KERNEL_SOURCE": ""}, _RELEASE, shipped=(shipped,), root=tmp_path)

    assert shipped == found


def test_shipped_headers_come_before_those_of_the_running_kernel(
    tmp_path: Path, shipped: Path
) -> None:
    """
    Headers that ship with gilscope are used even where the host has its own.
    """
    _make_tree(shipped)
    _make_tree(tmp_path / "lib/modules" / _RELEASE / "build")

    assert shipped == find_headers({}, _RELEASE, shipped=(shipped,), root=tmp_path)


def test_an_incomplete_shipped_tree_is_passed_over(tmp_path: Path, shipped: Path) -> None:
    """
    A tree without the configured kernel's autoconf.h cannot be compiled against.
    """
    _make_tree(shipped, complete=False)
    other = _make_tree(tmp_path / "other")

    assert other == find_headers({}, _RELEASE, shipped=(shipped, other), root=tmp_path)


def test_headers_of_the_running_kernel_are_left_to_bcc(tmp_path: Path, shipped: Path) -> None:
    """
    With a build tree of the running kernel BCC is told nothing, for it also joins split trees.
    """
    build = tmp_path / "lib/modules" / _RELEASE / "build"
    build.mkdir(parents=True)
    _make_tree(tmp_path / "usr/src/linux-headers-6.1.0-9")

    assert None is find_headers({}, _RELEASE, shipped=(shipped,), root=tmp_path)
    assert build == find_system_headers(_RELEASE, root=tmp_path)


def test_a_kernel_that_carries_its_headers_is_left_to_bcc(tmp_path: Path, shipped: Path) -> None:
    """
    BCC unpacks the archive in /sys/kernel by itself.
    """
    archive = tmp_path / "sys/kernel/kheaders.tar.xz"
    archive.parent.mkdir(parents=True)
    archive.touch()
    _make_tree(tmp_path / "usr/src/linux-headers-6.1.0-9")

    assert None is find_headers({}, _RELEASE, shipped=(shipped,), root=tmp_path)
    assert archive == find_system_headers(_RELEASE, root=tmp_path)


def test_the_newest_complete_source_tree_is_the_last_resort(tmp_path: Path, shipped: Path) -> None:
    """
    Versions in /usr/src compare as numbers, and split halves do not count.
    """
    _make_tree(tmp_path / "usr/src/linux-headers-6.1.0-9-generic")
    newest = _make_tree(tmp_path / "usr/src/linux-headers-6.1.0-10-generic")
    _make_tree(tmp_path / "usr/src/linux-headers-6.1.0-11-common", complete=False)

    assert newest == find_headers({}, _RELEASE, shipped=(shipped,), root=tmp_path)
    assert None is find_system_headers(_RELEASE, root=tmp_path)


def test_a_machine_without_headers_has_none(tmp_path: Path, shipped: Path) -> None:
    """
    Without any headers both searches come back empty.
    """
    assert None is find_headers({}, _RELEASE, shipped=(shipped,), root=tmp_path)
    assert None is find_system_headers(_RELEASE, root=tmp_path)
