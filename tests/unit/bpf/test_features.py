"""What a kernel allows is known by its release."""

import os

import pytest

from gilscope.bpf.features import Features, kernel_features

_OLD = Features(uprobe_links=False, tables_may_grow=False)
_MIDDLE = Features(uprobe_links=False, tables_may_grow=True)
_NEW = Features(uprobe_links=True, tables_may_grow=True)


@pytest.mark.parametrize(
    ("release", "features"),
    [
        ("5.8.0", _OLD),
        ("5.15.0-91-generic", _OLD),
        ("6.0.9", _OLD),
        ("6.1.0-18-amd64", _MIDDLE),
        ("6.6.0", _MIDDLE),
        ("6.9.12", _MIDDLE),
        ("6.10.0", _NEW),
        ("6.10.0-rc3+", _NEW),
        ("6.18.1-custom", _NEW),
        ("7.0", _NEW),
        ("10.2.1", _NEW),
        ("unknown", _OLD),
    ],
)
def test_a_feature_is_used_from_the_version_in_which_it_works(
    release: str, features: Features
) -> None:
    """
    A link with a pid saw the main thread only before 6.10; growing tables made 5.7 to 6.0 warn.
    """
    assert features == kernel_features(release)


def test_the_running_kernel_is_asked_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Without a release it is that of this machine.
    """
    for release, features in (("6.9.0", _MIDDLE), ("6.12.0", _NEW)):
        uname = os.uname_result(("Linux", "host", release, "#1", "x86_64"))
        monkeypatch.setattr(os, "uname", lambda uname=uname: uname)
        assert features == kernel_features()
