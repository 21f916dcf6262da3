"""Which thread roles get series of their own, and what the series show."""

import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from random import Random

from gilscope.model.gil import Tally, ThreadTotals
from gilscope.model.kinds import Kind
from gilscope.series.roles import MOST_ROLES, RoleAccount, RoleFigures, roles_over_time
from support.recordings.gil import MS, thread

_S = 1000 * MS


def _thread(role: str | None, ns: int, *, held: Tally | None = None) -> ThreadTotals:
    return replace(thread(1, role, {Kind.CONVOY: Tally(ns, 1)}), held=held)


def _shown(account: RoleAccount, threads: Iterable[ThreadTotals]) -> dict[str, int]:
    account.enter(threads)
    return {each.role: each.waits.ns for each in account.figures(0)}


def test_few_roles_have_series_at_once_with_all_their_time() -> None:
    """
    However little they have lost, from the first time that they are seen; threads are added up.
    """
    account = RoleAccount()
    threads = [_thread("a", 5), _thread("a", 6), _thread("b", 0), _thread(None, 7)]

    account.enter(threads)

    assert (
        RoleFigures("a", Tally(11, 2), None),
        RoleFigures("b", Tally(0, 1), None),
    ) == account.figures(0)


def test_holds_are_shown_where_they_are_seen() -> None:
    """
    Time and number of the holds of a role, beside its waits.
    """
    account = RoleAccount()
    account.enter([_thread("a", 5, held=Tally(100, 3)), _thread("b", 6)])

    assert (
        RoleFigures("a", Tally(5, 1), Tally(100, 3)),
        RoleFigures("b", Tally(6, 1), None),
    ) == account.figures(0)


def test_three_thousand_roles_are_a_bounded_number_of_series() -> None:
    """
    All together show what was lost altogether, and the costliest latecomers have their own.
    """
    account = RoleAccount()
    threads = [_thread(f"role {number}", MS) for number in range(3000)]
    costly = [_thread(f"costly {number}", 10 * _S) for number in range(5)]

    shown = _shown(account, threads)
    later = _shown(account, [*threads, *costly])

    assert 3000 * MS > shown["other"] > 2900 * MS
    assert len(shown) < len(later) <= MOST_ROLES + 1
    assert 3000 * MS == sum(shown.values())
    assert 3000 * MS + 50 * _S == sum(later.values())
    assert {"costly 0", "costly 1", "costly 2", "costly 3", "costly 4"} <= later.keys()


def test_no_series_ever_falls_and_the_sum_is_right() -> None:
    """
    Whatever threads come, lose and go to the rest, as dead ones do.
    """
    random = Random(7)  # noqa: S311 - of no secret
    account = RoleAccount()
    lost: dict[str, int] = {}
    before: dict[str, int] = {}
    for step in range(400):
        role = f"role {step if random.random() < 0.5 else random.randrange(step + 1)}"
        lost[role] = lost.get(role, 0) + random.randrange(50 * MS)
        if len(lost) > 100:
            cheapest = min(lost.keys() - {"other"}, key=lost.__getitem__)
            lost["other"] = lost.get("other", 0) + lost.pop(cheapest)
        shown = _shown(account, [_thread(role, ns) for role, ns in lost.items()])
        assert all(shown[role] >= ns for role, ns in before.items())
        assert sum(lost.values()) == sum(shown.values())
        assert len(shown) <= MOST_ROLES + 1
        before = shown


def test_roles_that_have_gone_take_no_memory() -> None:
    """
    Ever new names, each of which is soon part of the rest.
    """
    account = RoleAccount()

    def use(numbers: range) -> int:
        for number in numbers:
            account.enter([_thread("other", number * MS), _thread(f"role {number}", MS)])
            account.figures(0)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        grown = -use(range(1000)) + use(range(1000, 3000))
    finally:
        tracemalloc.stop()
    # Each role takes a kilobyte.
    assert grown < 500_000


def test_recording_shows_the_costliest_roles_from_its_beginning() -> None:
    """
    Nobody has seen it before: the last look decides which they are.
    """
    cheap = [_thread(f"role {number}", MS) for number in range(100)]
    before, after = roles_over_time([[*cheap, _thread("late", 0)], [*cheap, _thread("late", _S)]])

    assert MOST_ROLES + 1 == len(before) == len(after)
    assert Tally(_S, 1) == next(each.waits for each in after if each.role == "late")
    assert Tally(0, 1) == next(each.waits for each in before if each.role == "late")
    assert 100 * MS == sum(each.waits.ns for each in before)
