"""What ``serve`` shows people: the landing page, reports of the last minutes, and captures."""

import http
from collections.abc import Mapping

from markupsafe import Markup

from gilscope.exporter.collector import AgentCollector
from gilscope.exporter.source import Source
from gilscope.model.kinds import Mode
from gilscope.series.blocking import BlockingSeries
from gilscope.values import dataclass
from gilscope.web.captures import Captured, capture_answer
from gilscope.web.last_minutes import LastMinutes
from gilscope.web.listener import Answer, Route
from gilscope.web.moments import Moments
from gilscope.web.page import page
from gilscope.web.page.agent import SelfPortrait
from gilscope.web.page.blocking import MOST_PAIRS
from gilscope.web.report import Reporter
from gilscope.web.source_history import SourceHistory

__all__ = ["Pages"]

_HTML = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": page.POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Pages:
    """What they show."""

    source: Source
    """Whose observations are in *watched*."""
    watched: SourceHistory
    collector: AgentCollector
    book: BlockingSeries
    shows_logs: bool
    mode: Mode
    captures: Captured
    moments: Moments
    """When a process has waited most since a time."""

    def routes(self, every_s: float | None = None) -> Mapping[str, Route]:
        """Return what answers, by path; the landing page refreshes *every_s*."""
        every_s = page.EVERY_S if every_s is None else every_s
        reporter = Reporter(
            LastMinutes(
                self.watched.observe,
                self.watched.pasts,
                self.source.refusals,
                mode=self.mode,
                application=self.book.application,
                moments=self.moments,
            )
        )
        return {
            "/": lambda _: self._page(every_s),
            "/live": lambda _: self._fragment(),
            "/report": lambda request: reporter.answer(request.query),
            "/capture": lambda request: capture_answer(request.query, self.captures()),
        }

    def _page(self, every_s: float) -> Answer:
        return http.HTTPStatus.OK, _HTML, page.document(self._main(), every_s).encode()

    def _fragment(self) -> Answer:
        return http.HTTPStatus.OK, _HTML, self._main().encode()

    def _main(self) -> Markup:
        watched = self.watched
        with self.book.turn:
            seen = self.source.observe()
            observations = [each.gil for each in seen if each.gil is not None]
            lately = self.book.lately(observations, MOST_PAIRS)
        live = [each.transactions for each in seen if each.transactions is not None]
        locked = [each.locks for each in seen if each.locks is not None]
        logs = watched.logs()
        figures = page.Figures(
            observations,
            self.source.refusals(),
            SelfPortrait(self.source.agent_state(), self.collector.last_scrape_ns),
            lately,
            page.Transactions(
                live,
                logs if self.shows_logs else None,
                watched.stm_curves(live),
                watched.log_curves(logs),
            ),
            watched.curves(observations),
            self.captures() or (),
            page.Locks(locked, watched.lock_curves(locked)),
            self.book.application,
        )
        return page.main_part(figures)
