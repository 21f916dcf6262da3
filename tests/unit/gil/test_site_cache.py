"""The cache of sites."""

from pathlib import Path

import pytest

from gilscope.gil.site_cache import SiteCache
from gilscope.model import CallerRule, PausePoint, Site, Sites

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


def test_sites_come_back(tmp_path: Path) -> None:
    """
    What was stored is loaded, by its build-id only.
    """
    cache = SiteCache(tmp_path / "new")
    cache.store(_SITES)

    assert _SITES == cache.load("ab12")
    assert cache.load("ab13") is None


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"version": 1}', "[1]"])
def test_damaged_entry_is_searched_for_again(tmp_path: Path, text: str) -> None:
    """
    A broken file costs time, not truth.
    """
    cache = SiteCache(tmp_path)
    cache.store(_SITES)
    (path,) = tmp_path.iterdir()
    path.write_text(text)

    assert cache.load("ab12") is None


def test_entry_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    """
    An address for a probe comes from nobody but this user or root.
    """
    cache = SiteCache(tmp_path)
    cache.store(_SITES)
    (path,) = tmp_path.iterdir()
    path.chmod(0o666)

    assert cache.load("ab12") is None


def test_entry_under_another_name_is_not_believed(tmp_path: Path) -> None:
    """
    The build-id inside counts, not the file's name.
    """
    cache = SiteCache(tmp_path)
    cache.store(_SITES)
    (path,) = tmp_path.iterdir()
    path.rename(tmp_path / "sites-ab13.json")

    assert cache.load("ab13") is None


def test_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    """
    Without a cache everything works, a little later.
    """
    file = tmp_path / "file"
    file.write_text("")
    cache = SiteCache(file / "folder")
    cache.store(_SITES)

    assert cache.load("ab12") is None
