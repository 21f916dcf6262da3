"""Says which places in STM programs have time series of their own, and what each series shows."""

import threading
from collections.abc import Mapping, Sequence
from typing import Final

from gilscope.model.gil import Tally
from gilscope.naming.places import SiteNames
from gilscope.series.by_name.ledger import Labels, Ledger
from gilscope.series.by_name.top_series import TopSeries
from gilscope.stm_log.markers import describe, position_of
from gilscope.stm_log.sums import FollowedLog, Loss, Place
from gilscope.text.printable import label
from gilscope.values import dataclass

__all__ = ["ConflictSeries", "SiteLoss", "kind_label"]

_LOST: Final = "lost"
_PAUSED: Final = "paused"
_REST: Final = "not told apart"

_Item = tuple[Place, str]


@dataclass(frozen=True, slots=True)
class SiteLoss:
    """What the series of one place show; all of them only grow."""

    kind: str
    site: str
    other_site: str
    """Empty: there is none."""
    loss: Loss


class ConflictSeries:
    """The series of all followed logs."""

    def __init__(self, limit: int) -> None:
        """Give at most *limit* places of each log series of their own; 0: there are no series."""
        self._limit = limit
        self._logs: dict[str, _Sites] = {}
        self.turn = threading.RLock()
        """Who holds it from before the logs are asked for gets figures as old as they are."""

    def series(self, logs: Sequence[FollowedLog], at_ns: int) -> dict[str, tuple[SiteLoss, ...]]:
        """Return what to export of *logs* now, at *at_ns*, by their names."""
        if not self._limit:
            return {}
        for log in logs:
            if log.name not in self._logs:
                self._logs[log.name] = _Sites(self._limit)
            self._logs[log.name].enter(log.sums.losses)
        return {log.name: self._logs[log.name].shown(at_ns) for log in logs}


class _Sites:
    """Those of one log. Lost and paused time of a place are two lines of the same place."""

    def __init__(self, limit: int) -> None:
        self._names = SiteNames()
        self._totals = Ledger(())
        self._slots = TopSeries(self._totals, limit, width=2)

    def enter(self, losses: Mapping[Place, Loss]) -> None:
        """Take over *losses* as they are now."""
        items: list[_Item] = []
        tallies: list[Tally] = []
        for place, loss in losses.items():
            items += [(place, _LOST), (place, _PAUSED)]
            tallies += [Tally(loss.lost_ns, loss.count), Tally(loss.paused_ns, 0)]
        self._totals.update(items, tallies, items, self._named)

    def shown(self, at_ns: int) -> tuple[SiteLoss, ...]:
        """Return what the series show."""
        found: dict[tuple[str, str, str], Loss] = {}
        for (site, other_site, kind, what), ns, count in self._slots.shown(at_ns):
            labels = (kind, site, other_site)
            loss = Loss(ns, 0, count) if what == _LOST else Loss(0, ns, count)
            found[labels] = found.get(labels, Loss()) + loss
        return tuple(SiteLoss(*labels, loss) for labels, loss in found.items())

    def _named(self, item: _Item) -> tuple[Labels, Labels]:
        (kind, markers, is_rest), what = item
        first, second = (*markers, "", "")[:2]
        site = _REST if is_rest else self._site(first)
        return (site, self._site(second) if second else ""), (kind_label(kind), what)

    def _site(self, marker: str) -> str:
        position = position_of(marker)
        if position is None:
            return label(describe(marker).strip("()"))
        path = self._names.path(position.file)
        return label(f"{position.function} ({path}:{position.line})")


def kind_label(kind: str) -> str:
    """Return the name of an event without the prefix that all of them have."""
    return kind.removeprefix("STM_")
