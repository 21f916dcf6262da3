"""Tests of log_groups.py: which files belong to one program."""

import pytest

from gilscope.stm_log.follow.log_groups import family_of


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("app.log", "app.log"),
        ("app.log.fork12", "app.log"),
        ("app.log.fork12.fork13", "app.log.fork12"),
        ("app.log.forks", "app.log.forks"),
        (".fork1", ".fork1"),
    ],
)
def test_forks_belong_to_the_log_of_their_process(name: str, family: str) -> None:
    """
    The name that PyPy-STM gives to the log of a fork says of which one.
    """
    assert family == family_of(name)
