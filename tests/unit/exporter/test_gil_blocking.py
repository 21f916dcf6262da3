"""From edges and slow_drops to families."""

from dataclasses import replace

from gilscope.exporter.collector import AgentCollector
from gilscope.model.gil import GilObservation, Tally
from gilscope.model.kinds import Kind
from gilscope.series.blocking import BlockingSeries
from support.recordings.gil import MS, PROCESS, observation, stack, with_edges
from support.reports.scraped import OPEN_METRICS, PLAIN, Fixed, Scrape, read

_BLOCKED = "gilscope_gil_blocked_seconds_total"


def _scrape(book: BlockingSeries, seen: GilObservation, content_type: str = PLAIN) -> Scrape:
    return read(AgentCollector(Fixed([seen]).source, book), content_type)


def _grown(seen: GilObservation) -> GilObservation:
    """Return *seen* a second later, when all has been lost twice."""
    totals = replace(
        seen.totals,
        at_ns=seen.totals.at_ns + 1000 * MS,
        threads=tuple(
            replace(thread, lost={kind: tally + tally for kind, tally in thread.lost.items()})
            for thread in seen.totals.threads
        ),
        edges=tuple(replace(edge, lost=edge.lost + edge.lost) for edge in seen.totals.edges),
        slow_drops=tuple(
            replace(slow, drop_latency=slow.drop_latency + slow.drop_latency)
            for slow in seen.totals.slow_drops
        ),
    )
    return replace(seen, totals=totals)


def test_pairs_and_slow_holders_are_exported() -> None:
    """
    Times in seconds, and numbers, by site.
    """
    book, seen = BlockingSeries(), with_edges().observation
    _scrape(book, seen)

    figures = _scrape(book, _grown(seen))

    pair = {"waiter": "handle (app.py:13)", "holder": "crunch (app.py:4)", "kind": "GIL_CONVOY"}
    others = {"waiter": "other", "holder": "other", "kind": "GIL_CONVOY"}
    slow = {"holder": "Pattern.scan <café> (match.py:27)"}
    assert 1.1 == figures.of_process(_BLOCKED, **pair)
    assert 90 == figures.of_process("gilscope_gil_blocked_total", **pair)
    assert 1.5 == figures.of_process(_BLOCKED, **others)
    assert 0.26 == figures.of_process("gilscope_gil_slow_drop_seconds_total", **slow)
    assert 12 == figures.of_process("gilscope_gil_slow_drops_total", **slow)


def test_blocked_time_is_waiting_time() -> None:
    """
    All pairs of a process together have lost what all its roles have.
    """
    book, seen = BlockingSeries(pairs=2), with_edges().observation
    for scraped in (seen, _grown(seen)):
        figures = _scrape(book, scraped)

        assert round(figures.total("gilscope_gil_thread_wait_seconds_total"), 9) == round(
            figures.total(_BLOCKED), 9
        )


def test_quiet_process_exports_zeros_of_what_it_can_lose() -> None:
    """
    Where causes are known, waits of unknown cause do not occur; and the other way round.
    """
    blind = replace(observation(), process=replace(PROCESS, method="libc", knows_causes=False))

    def kinds(seen: GilObservation) -> dict[str, float]:
        figures = _scrape(BlockingSeries(), seen)
        return {each.labels["kind"]: each.value for each in figures.samples(_BLOCKED)}

    assert {"GIL_BLOCKING_CALL": 0, "GIL_PREEMPTION": 0, "GIL_CONVOY": 0} == kinds(observation())
    assert {"GIL_UNKNOWN": 0} == kinds(blind)


def test_without_pairs_the_families_are_empty() -> None:
    """
    They are announced all the same.
    """
    figures = _scrape(BlockingSeries(pairs=0), with_edges().observation)

    assert [] == figures.samples(_BLOCKED)
    assert _BLOCKED.removesuffix("_total") in {family.name for family in figures.families}


def test_whatever_a_function_is_called_the_scrape_can_be_read() -> None:
    """
    Quotes, backslashes, line ends and halves of surrogate pairs; in both formats.
    """
    seen = with_edges().observation
    nasty = stack(('"} 1\n\\n{\udc80', "/srv/a\\b.py", 1, 4))
    edges = tuple(replace(edge, holder=nasty) for edge in seen.totals.edges)
    hostile = replace(seen, totals=replace(seen.totals, edges=edges))

    for content_type in (PLAIN, OPEN_METRICS):
        figures = _scrape(BlockingSeries(), hostile, content_type)

        assert {"other", '"} 1 \\n{ (a\\b.py:4)'} == {
            each.labels["holder"] for each in figures.samples(_BLOCKED)
        }


def test_every_kind_has_a_series_of_its_own() -> None:
    """
    A pair that waits after blocking calls, short and long.
    """
    seen = with_edges().observation
    convoy = seen.totals.edges[0]
    short = replace(convoy, kind=Kind.BLOCKING_CALL, lost=Tally(20 * MS, 9))
    both = replace(seen, totals=replace(seen.totals, edges=(convoy, short)))
    book = BlockingSeries()
    _scrape(book, both)

    figures = _scrape(book, _grown(both))

    ends = {"waiter": "handle (app.py:13)", "holder": "crunch (app.py:4)"}
    assert [1.1, 0.02] == [
        figures.of_process(_BLOCKED, **ends, kind=kind)
        for kind in ("GIL_CONVOY", "GIL_BLOCKING_CALL")
    ]
