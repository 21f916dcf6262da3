"""Which places get series of their own, and what the series show."""

from random import Random

import pytest

from gilscope.model.gil import Tally
from gilscope.series.by_name.ledger import Ledger
from gilscope.series.by_name.top_series import TopSeries, advanced, shown_over_time, sums_of
from support.recordings.gil import MS

_S = 1000 * MS
_MINUTE = 60 * _S


class _Slots:
    """Series of places with one name, whose losses are of the kind `usual` as a rule."""

    def __init__(
        self, limit: int, *, most: int | None = None, idle_ns: int | None = None, at_once: int = 0
    ) -> None:
        self._totals = Ledger([("usual",)])
        self._slots = TopSeries(
            self._totals, limit, width=1, most=most, idle_ns=idle_ns, at_once=at_once
        )
        self._lost: dict[tuple[str, str], Tally] = {}

    def lose(self, place: str, ns: int, count: int = 1, kind: str = "usual") -> None:
        """Let *place* lose more."""
        self._lost[place, kind] = self._lost.get((place, kind), Tally()) + Tally(ns, count)

    def show(self, at_ns: int = 0) -> dict[tuple[str, ...], int]:
        """Return the times that a scrape shows."""
        return {labels: ns for labels, ns, _ in self._shown(at_ns)}

    def show_numbers(self) -> dict[tuple[str, ...], int]:
        """Return the numbers."""
        return {labels: count for labels, _, count in self._shown(0)}

    def _shown(self, at_ns: int) -> tuple[tuple[tuple[str, ...], int, int], ...]:
        keys = list(self._lost)
        tallies = list(self._lost.values())
        self._totals.update(keys, tallies, keys, lambda key: ((key[0],), (key[1],)))
        return self._slots.shown(at_ns)


def test_series_begins_at_zero_and_shows_what_comes_after() -> None:
    """
    What was lost before stays where it was shown, under `other`.
    """
    slots = _Slots(limit=4)
    slots.lose("a", 30 * MS)

    assert {("other", "usual"): 30 * MS, ("a", "usual"): 0} == slots.show()
    slots.lose("a", 5 * MS)
    assert {("other", "usual"): 30 * MS, ("a", "usual"): 5 * MS} == slots.show()
    assert {("other", "usual"): 1, ("a", "usual"): 1} == slots.show_numbers()


def test_costliest_come_first_and_one_slot_is_left_for_what_comes() -> None:
    """
    Of three free slots two are given at once, then half of what is left, rounded up.
    """
    slots = _Slots(limit=3)
    for place, ns in (("a", 20 * MS), ("b", 40 * MS), ("c", 30 * MS), ("d", 25 * MS)):
        slots.lose(place, ns)

    assert {"other", "b", "c"} == {place for place, _ in slots.show()}
    slots.lose("e", 90 * MS)
    slots.lose("d", 90 * MS)
    assert {"other", "b", "c", "d"} == {place for place, _ in slots.show()}
    slots.lose("a", _S)
    assert {"other", "b", "c", "d"} == {place for place, _ in slots.show()}


def test_trifles_share_a_series() -> None:
    """
    Less than 10 ms, or less than half a percent of what was lost altogether.
    """
    slots = _Slots(limit=50)
    slots.lose("a", 10 * MS - 1)
    small = set(slots.show())
    slots.lose("b", 10 * _S)
    slots.lose("c", 40 * MS)

    assert {("other", "usual")} == small
    assert {("other", "usual"), ("b", "usual")} == set(slots.show())


def test_what_is_no_trifle_lately_gets_a_series_after_a_month() -> None:
    """
    However much was lost before.
    """
    slots = _Slots(limit=50)
    slots.lose("a", 1_000_000 * _S)
    for minute in range(20):
        slots.lose("a", _MINUTE)
        slots.show(minute * _MINUTE)

    slots.lose("b", 6 * _S)

    assert ("b", "usual") in slots.show(20 * _MINUTE)


def test_new_kind_of_a_place_with_a_series_begins_at_zero_too() -> None:
    """
    It takes no slot, and what it has lost when it is first seen is under `other`.
    """
    slots = _Slots(limit=1)
    slots.lose("a", 30 * MS)
    slots.show()
    slots.lose("a", 3 * MS, kind="rare")

    assert {
        ("other", "usual"): 30 * MS,
        ("other", "rare"): 3 * MS,
        ("a", "usual"): 0,
        ("a", "rare"): 0,
    } == slots.show()
    slots.lose("a", 4 * MS, kind="rare")
    assert 4 * MS == slots.show()["a", "rare"]


def test_there_are_no_more_series_than_there_may_be() -> None:
    """
    However many kinds a place has; what finds no room stays under `other`, all of it.
    """
    slots = _Slots(limit=2, most=2)
    for kind in ("usual", "rare", "odd"):
        slots.lose("a", 30 * MS, kind=kind)
    slots.show()
    for kind in ("usual", "rare", "odd"):
        slots.lose("a", 5 * MS, kind=kind)

    shown = slots.show()

    assert {("a", "usual"): 5 * MS, ("a", "rare"): 5 * MS} == {
        labels: ns for labels, ns in shown.items() if labels[0] == "a"
    }
    assert 35 * MS == shown["other", "odd"]


def test_a_place_that_is_idle_makes_room() -> None:
    """
    What it has shown goes with it, so nothing else seems to have lost that; it may come again.
    """
    slots = _Slots(limit=1, idle_ns=30 * _MINUTE)
    slots.lose("a", 30 * MS)
    slots.show()
    slots.lose("a", 5 * MS)
    slots.show(_MINUTE)
    slots.lose("b", 40 * MS)
    early = slots.show(30 * _MINUTE)
    slots.lose("b", 50 * MS)
    late = slots.show(31 * _MINUTE)
    slots.lose("a", 60 * MS)
    slots.lose("b", MS)
    again = slots.show(32 * _MINUTE)

    assert {("other", "usual"): 70 * MS, ("a", "usual"): 5 * MS} == early
    assert {("other", "usual"): 120 * MS, ("b", "usual"): 0} == late
    assert {("other", "usual"): 180 * MS, ("b", "usual"): MS} == again


def test_an_idle_place_keeps_its_series_while_there_is_room() -> None:
    """
    Nobody is in need of it.
    """
    slots = _Slots(limit=4, idle_ns=30 * _MINUTE)
    slots.lose("a", 30 * MS)
    slots.show()
    slots.lose("b", 40 * MS)

    assert ("a", "usual") in slots.show(100 * _MINUTE)


def test_what_had_a_series_at_once_begins_at_zero_the_second_time() -> None:
    """
    Its first one has shown all that it had lost by then.
    """
    slots = _Slots(limit=1, at_once=1, idle_ns=30 * _MINUTE)
    slots.lose("a", 30 * MS)
    first = slots.show()
    slots.lose("b", 40 * MS)
    slots.show(31 * _MINUTE)
    slots.lose("a", 20 * MS)
    second = slots.show(62 * _MINUTE)

    assert {("other", "usual"): 0, ("a", "usual"): 30 * MS} == first
    assert 0 == second["a", "usual"]
    assert 60 * MS == second["other", "usual"]


def test_quiet_process_shows_zero() -> None:
    """
    So that its first loss is an increase.
    """
    assert {("other", "usual"): 0} == _Slots(limit=5).show()


def test_wait_that_turns_out_to_be_of_another_kind_makes_nothing_fall() -> None:
    """
    The first kind keeps what it has shown until it has lost as much; the sum is right throughout.
    """
    slots = _Slots(limit=1)
    slots.lose("a", 30 * MS)
    slots.lose("a", 30 * MS, kind="rare")
    slots.show()
    slots.lose("a", 3 * MS, 0)
    slots.show()

    slots.lose("a", -3 * MS, 0)
    slots.lose("a", 20 * MS, 1, kind="rare")
    during = slots.show()
    slots.lose("a", 4 * MS)
    after = slots.show()

    assert (3 * MS, 17 * MS) == (during["a", "usual"], during["a", "rare"])
    assert (4 * MS, 20 * MS) == (after["a", "usual"], after["a", "rare"])


@pytest.mark.parametrize("seed", range(10))
def test_nothing_runs_back_where_idle_places_make_room(seed: int) -> None:
    """
    Of the series that stay; together they are no more than what was lost.
    """
    random = Random(seed)  # noqa: S311 - made-up losses
    slots = _Slots(limit=3, most=4, idle_ns=5 * _MINUTE)
    shown: dict[tuple[str, ...], int] = {}
    lost_ns = gone_ns = 0
    for step in range(300):
        busy = "abcdefghij"[step // 30 :][:3]
        for _ in range(random.randint(0, 5)):
            ns = random.randint(0, 30 * MS)
            lost_ns += ns
            slots.lose(random.choice(busy or "j"), ns, kind=random.choice(["usual", "rare"]))
        before, shown = shown, slots.show(step * _MINUTE)
        gone_ns += sum(ns for labels, ns in before.items() if labels not in shown)

        assert lost_ns == sum(shown.values()) + gone_ns
        assert [] == [
            labels for labels, ns in before.items() if labels in shown and shown[labels] < ns
        ]
        assert len([labels for labels in shown if labels[0] != "other"]) <= 4
    assert gone_ns > 0


@pytest.mark.parametrize("seed", range(20))
def test_nothing_runs_back_and_the_sum_is_right(seed: int) -> None:
    """
    Whatever is lost where, with time that moves from one place to another as waits in flight do.
    """
    random = Random(seed)  # noqa: S311 - made-up losses
    slots = _Slots(limit=random.randint(1, 6))
    shown: dict[tuple[str, ...], int] = {}
    lost_ns = 0
    for step in range(200):
        for _ in range(random.randint(0, 5)):
            ns = random.randint(0, 30 * MS)
            lost_ns += ns
            slots.lose(random.choice("abcdefghij"), ns, kind=random.choice(["usual", "rare"]))
        moved_ns = random.randint(0, 4 * MS)
        slots.lose(random.choice("abc"), -moved_ns, 0)
        slots.lose(random.choice("defghij"), moved_ns, 0, kind="rare")
        before, shown = shown, slots.show(step * _MINUTE)

        assert lost_ns == sum(shown.values())
        assert [] == [labels for labels, ns in before.items() if shown[labels] < ns]


@pytest.mark.parametrize(
    ("shown", "actual", "expected"),
    [
        ([1, 2], [4, 2], [4, 2]),
        ([5, 0, 0], [2, 9, 1], [5, 7, 0]),
        ([5, 5], [4, 5], [5, 5]),
        ([], [], []),
    ],
)
def test_advanced(shown: list[int], actual: list[int], expected: list[int]) -> None:
    """
    What falls stays, at the expense of those that rise most; if all falls, nothing moves.
    """
    assert expected == list(advanced(shown, actual))


def test_what_is_shown_afterwards_is_whole() -> None:
    """
    The costliest places have all that they lost from the beginning, the others the rest together.
    """
    totals = Ledger([("usual",), ("rare",)])
    early = {("a", "usual"): Tally(5 * MS, 1), ("b", "usual"): Tally(20 * MS, 2)}
    late = early | {
        ("b", "rare"): Tally(3 * MS, 3),
        ("c", "usual"): Tally(40 * MS, 4),
        ("d", "usual"): Tally(2 * MS, 5),
    }
    times = []
    for lost in (early, late):
        totals.update(
            list(lost), list(lost.values()), list(lost), lambda key: ((key[0],), (key[1],))
        )
        times.append(sums_of(totals))

    assert (
        (
            (("other", "usual"), 5 * MS, 1),
            (("other", "rare"), 0, 0),
            (("b", "usual"), 20 * MS, 2),
            (("b", "rare"), 0, 0),
            (("c", "usual"), 0, 0),
        ),
        (
            (("other", "usual"), 7 * MS, 6),
            (("other", "rare"), 0, 0),
            (("b", "usual"), 20 * MS, 2),
            (("b", "rare"), 3 * MS, 3),
            (("c", "usual"), 40 * MS, 4),
        ),
    ) == shown_over_time(totals, times, 2, width=1)


def test_nothing_that_is_shown_afterwards_runs_back() -> None:
    """
    A wait in flight that turns out to be another place's stays where it was first.
    """
    totals = Ledger([("usual",)])
    times = []
    for a_ns, b_ns in ((30 * MS, 10 * MS), (20 * MS, 25 * MS)):
        lost = {("a",): Tally(a_ns, 1), ("b",): Tally(b_ns, 1)}
        totals.update(list(lost), list(lost.values()), list(lost), lambda key: (key, ("usual",)))
        times.append(sums_of(totals))

    shown = [
        {labels[0]: ns for labels, ns, _ in series}
        for series in shown_over_time(totals, times, 2, width=1)
    ]
    assert [
        {"other": 0, "a": 30 * MS, "b": 10 * MS},
        {"other": 0, "a": 30 * MS, "b": 15 * MS},
    ] == shown
