"""Followers in an empty working folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gilscope.stm_log.follow.follower import Follower
from support.stm_log.followers import Follow


@pytest.fixture
def said() -> list[str]:
    """Return what followers have said."""
    return []


@pytest.fixture
def following(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> Iterator[Follow]:
    """Make followers in an empty working folder."""
    monkeypatch.chdir(tmp_path)
    made: list[Follower] = []

    def make(
        *patterns: str, say: Callable[[str], None] = said.append, keeps_ended: bool = False
    ) -> Follower:
        made.append(Follower(patterns, say, keeps_ended=keeps_ended))
        return made[-1]

    yield make
    for follower in made:
        follower.close()
