"""The tables of metrics by subject, joined to one."""

from types import ModuleType

import pytest

from gilscope.metrics import agent, gil, locks, requests, stm, table
from gilscope.metrics.family import families_of

_SUBJECTS = (gil, requests, locks, stm, agent)


@pytest.mark.parametrize("subject", _SUBJECTS)
def test_every_family_of_a_subject_is_in_the_table(subject: ModuleType) -> None:
    """
    By its name in the code too, which is what those use who fill it.
    """
    named = {name for name, value in vars(table).items() if value in families_of(subject)}

    assert set(subject.__all__) == named
    assert len(families_of(subject)) == len(named)


def test_the_table_has_every_family_once() -> None:
    """
    No two have one name, and none is left out.
    """
    assert len(table.FAMILIES) == len({family.name for family in table.FAMILIES})
    assert set(table.FAMILIES) == {each for subject in _SUBJECTS for each in families_of(subject)}
