"""Sums by name of a list that is read again and again."""

from collections.abc import Sequence

from gilscope.model.gil import Tally
from gilscope.series.by_name.ledger import Labels, Ledger, Sum

_Loss = tuple[int, Tally, tuple[str, str]]


class _Sums:
    """Totals of losses that are called what they consist of: a place and a kind."""

    def __init__(self, above: Ledger | None = None) -> None:
        self.totals = Ledger([("usual",)], above)
        self.named: list[tuple[str, str]] = []

    def update(self, *losses: _Loss) -> None:
        """Take over *losses*."""
        keys, tallies, items = zip(*losses, strict=True)
        self.totals.update(keys, tallies, items, self._name)

    def lines(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Return time and number by place and kind."""
        return {
            (line.place.names[0], line.kind[0]): (line.ns, line.count) for line in self.totals.lines
        }

    def changed(self) -> Sequence[tuple[str, str]]:
        """Return the places and kinds that have changed."""
        return [(line.place.names[0], line.kind[0]) for line in self.totals.take_changed()]

    def _name(self, item: tuple[str, str]) -> tuple[Labels, Labels]:
        self.named.append(item)
        place, kind = item
        return (place,), (kind,)


def test_what_has_the_same_names_is_one_line() -> None:
    """
    Stacks differ further out where sites do not; a place has a line for each kind.
    """
    sums = _Sums()

    sums.update(
        (1, Tally(10, 1), ("a", "usual")),
        (2, Tally(20, 2), ("a", "usual")),
        (3, Tally(5, 1), ("a", "rare")),
        (4, Tally(7, 1), ("b", "usual")),
    )

    assert {("a", "usual"): (30, 3), ("a", "rare"): (5, 1), ("b", "usual"): (7, 1)} == sums.lines()
    assert {("a",): 35, ("b",): 7} == {
        names: place.ns for names, place in sums.totals.places.items()
    }
    assert {("usual",): (37, 4), ("rare",): (5, 1)} == {
        kind: (each.ns, each.count) for kind, each in sums.totals.sums.items()
    }
    assert 42 == sums.totals.ns


def test_lists_replace_one_another() -> None:
    """
    A loss is not added once more because it is read once more, and its name is asked for once.
    """
    sums = _Sums()

    for ns in (10, 10, 25):
        sums.update((1, Tally(ns, 1), ("a", "usual")), (2, Tally(7, 1), ("b", "usual")))

    assert {("a", "usual"): (25, 1), ("b", "usual"): (7, 1)} == sums.lines()
    assert [("a", "usual"), ("b", "usual")] == sums.named


def test_parts_of_one_loss_are_added_up() -> None:
    """
    The same two stacks may come once for each interpreter; the list may be read again.
    """
    sums = _Sums()

    for ns in (10, 15):
        sums.update((1, Tally(ns, 1), ("a", "usual")), (1, Tally(20, 2), ("a", "usual")))

    assert {("a", "usual"): (35, 3)} == sums.lines()


def test_what_has_left_the_list_counts_for_nothing() -> None:
    """
    A wait in flight that turns out to be of another kind takes its time along.
    """
    sums = _Sums()
    sums.update((1, Tally(10), ("a", "usual")), (2, Tally(1, 1), ("b", "usual")))

    sums.update((3, Tally(12), ("a", "rare")), (2, Tally(1, 1), ("b", "usual")))

    assert {("a", "usual"): (0, 0), ("b", "usual"): (1, 1), ("a", "rare"): (12, 0)} == sums.lines()
    assert 13 == sums.totals.ns


def test_only_what_changes_is_reported() -> None:
    """
    Once, and with what was added by looks that did not ask.
    """
    sums = _Sums()
    sums.update((1, Tally(10, 1), ("a", "usual")), (2, Tally(7, 1), ("b", "usual")))
    first = sums.changed()
    sums.update((1, Tally(10, 2), ("a", "usual")), (2, Tally(7, 1), ("b", "usual")))
    sums.update((1, Tally(10, 2), ("a", "usual")), (2, Tally(7, 1), ("b", "usual")))

    assert [("a", "usual"), ("b", "usual")] == first
    assert [("a", "usual")] == sums.changed()
    assert [] == sums.changed()


def test_kinds_are_there_before_anything_is_lost() -> None:
    """
    With nothing in them.
    """
    (nothing,) = Ledger([("usual",)]).sums.values()

    assert isinstance(nothing, Sum)
    assert (0, 0) == (nothing.ns, nothing.count)


def test_what_is_gained_is_gained_above() -> None:
    """
    By names, also what moves from one to another; what is dropped stays there.
    """
    above = Ledger([("usual",)])
    one, other = _Sums(above), _Sums(above)
    one.update((1, Tally(10, 1), ("a", "usual")), (2, Tally(7, 1), ("b", "rare")))
    other.update((1, Tally(20, 2), ("a", "usual")))
    one.update((1, Tally(4, 1), ("a", "usual")), (2, Tally(13, 2), ("b", "rare")))
    del one

    assert {("a", "usual"): (24, 3), ("b", "rare"): (13, 2)} == {
        (line.place.names[0], line.kind[0]): (line.ns, line.count) for line in above.lines
    }
    assert 37 == above.ns
    assert [("usual",), ("rare",)] == list(above.sums)


def test_a_place_that_is_forgotten_stays_in_the_sums() -> None:
    """
    What it gains afterwards is a line of its own again, which begins at nothing.
    """
    above = Ledger([("usual",)])
    sums = _Sums(above)
    sums.update((1, Tally(10, 1), ("a", "usual")), (2, Tally(7, 1), ("b", "usual")))
    above.forget_all_but([above.places["b",]])
    sums.update((1, Tally(15, 2), ("a", "usual")), (2, Tally(9, 1), ("b", "usual")))

    assert {("b",): 9, ("a",): 5} == {names: place.ns for names, place in above.places.items()}
    assert (24, 3) == (above.sums["usual",].ns, above.sums["usual",].count)
