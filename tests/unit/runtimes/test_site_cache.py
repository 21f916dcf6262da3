"""The cache of sites."""

import os
from pathlib import Path

import pytest

from gilscope.elf.image import ElfImage
from gilscope.runtimes.site_cache import SiteCache
from gilscope.runtimes.sites import CallerRule, PausePoint, Site, Sites

_SITES = Sites(
    build_id="ab12",
    waits=(PausePoint(Site(0x401000, 0x1000), Site(0x401008, 0x1008)),),
    yields=(),
    acquires=(Site(0x401100, 0x1100),),
    releases=(Site(0x401200, 0x1200),),
    forced_drops=(Site(0x401300, 0x1300),),
    forced_takes=(Site(0x401308, 0x1308),),
    callers=(CallerRule(pc=0x401000, made_to_yield=False, cfa_offset=64),),
    checks=("one",),
)


class _Image(ElfImage):
    """A file of which only the names matter."""

    def __init__(self, build_id: str = "ab12", digest: str = "d1") -> None:
        self.build_id = build_id
        self.digest = digest


def test_sites_come_back(tmp_path: Path) -> None:
    """
    What was stored is loaded, for the same file only.
    """
    cache = SiteCache(tmp_path / "new")
    cache.store(_Image(), _SITES)

    assert _SITES == cache.load(_Image())
    assert cache.load(_Image("ab13")) is None


def test_another_file_with_the_same_build_id_is_searched_for_itself(tmp_path: Path) -> None:
    """
    A build-id can lie; a probe in the wrong place would crash its target.
    """
    cache = SiteCache(tmp_path)
    cache.store(_Image(), _SITES)

    assert cache.load(_Image(digest="d2")) is None


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"version": 2}', "[1]", "\n\n"])
def test_damaged_entry_is_searched_for_again(tmp_path: Path, text: str) -> None:
    """
    A broken file costs time, not truth.
    """
    cache = SiteCache(tmp_path)
    cache.store(_Image(), _SITES)
    (path,) = tmp_path.iterdir()
    path.write_text(text)

    assert cache.load(_Image()) is None


def test_a_changed_address_breaks_the_seal(tmp_path: Path) -> None:
    """
    No digit of an entry can change and be believed.
    """
    cache = SiteCache(tmp_path)
    cache.store(_Image(), _SITES)
    (path,) = tmp_path.iterdir()
    text = path.read_text()
    path.write_text(text.replace("4104", "4105"))

    assert "4104" in text
    assert cache.load(_Image()) is None


def test_entry_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    """
    An address for a probe comes from nobody but this user or root.
    """
    cache = SiteCache(tmp_path)
    cache.store(_Image(), _SITES)
    (path,) = tmp_path.iterdir()
    path.chmod(0o666)

    assert cache.load(_Image()) is None


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "huge"])
def test_an_entry_that_is_no_file_of_ours(tmp_path: Path, kind: str) -> None:
    """
    Nobody waits for a pipe, follows a link, or reads what has no end.
    """
    cache = SiteCache(tmp_path)
    cache.store(_Image(), _SITES)
    (path,) = tmp_path.iterdir()
    moved = path.rename(tmp_path / "moved")
    if kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "link":
        path.symlink_to(moved)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(moved.read_bytes())
        os.truncate(path, 1 << 40)

    assert cache.load(_Image()) is None


def test_a_folder_that_is_not_ours_is_not_read(
    tmp_path: Path,
) -> None:
    """
    Who owns it could put another entry there at any time.
    """
    cache = SiteCache(tmp_path)
    cache.store(_Image(), _SITES)
    tmp_path.chmod(0o777)

    assert cache.load(_Image()) is None


def test_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    """
    Without a cache everything works, a little later.
    """
    file = tmp_path / "file"
    file.write_text("")
    cache = SiteCache(file / "folder")
    cache.store(_Image(), _SITES)

    assert cache.load(_Image()) is None
