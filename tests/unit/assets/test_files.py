"""Tests of where shipped files are looked for."""

from pathlib import Path

import pytest

from gilscope.assets.files import asset
from support.paths import ROOT


def test_the_installation_comes_before_the_checkout(tmp_path: Path) -> None:
    """
    The first root that has the file wins.
    """
    roots = (tmp_path / "package", tmp_path / "checkout")
    for root in roots:
        (root / "probes").mkdir(parents=True)

    assert tmp_path / "package" / "probes" == asset("probes", roots)


def test_a_checkout_has_its_files_at_the_top(tmp_path: Path) -> None:
    """
    A file that is not inside the package is taken from the checkout.
    """
    roots = (tmp_path / "package", tmp_path / "checkout")
    (tmp_path / "checkout" / "dashboards").mkdir(parents=True)

    assert tmp_path / "checkout" / "dashboards" == asset("dashboards", roots)


def test_a_missing_file_is_named_with_the_places_searched(tmp_path: Path) -> None:
    """
    The error names the file and every root.
    """
    with pytest.raises(FileNotFoundError) as caught:
        asset("probes", (tmp_path / "a", tmp_path / "b"))

    expected = f"probes ships with gilscope but is not below any of: {tmp_path}/a, {tmp_path}/b"
    assert expected == str(caught.value)


def test_this_checkout_has_its_probes() -> None:
    """
    Without further arguments the probes of this very tree are found.
    """
    assert ROOT / "probes" == asset("probes")
