"""Books of services: what their processes have lost, those that have gone included."""

from collections.abc import Iterable
from dataclasses import replace

from gilscope.model.gil import Edge, GilObservation, Tally
from gilscope.model.kinds import Kind
from gilscope.series.blocking import BlockingSeries
from gilscope.series.by_name.owners import service_of
from gilscope.series.pairs import PAIRS_OF_SERVICE
from support.recordings.gil import (
    CRUNCHING,
    MS,
    PROCESS,
    SERVING,
    held_up_of,
    observation,
    stack,
    thread,
)

_S = 1000 * MS
_OWNER = service_of(PROCESS)
_PAIR = ("handle (app.py:13)", "crunch (app.py:4)", "GIL_CONVOY")
_OTHER = ("other", "other", "GIL_CONVOY")


def _seen(
    at_ns: int, ns: int = 0, edges: Iterable[Edge] = (), *, pid: int = 1, since_ns: int = 0
) -> GilObservation:
    """Return a process in which one thread has waited for *ns* behind another."""
    found = (*edges, Edge(Kind.CONVOY, SERVING, CRUNCHING, Tally(ns, 1))) if ns else tuple(edges)
    seen = observation((thread(pid, "serve (app.py:8)", {Kind.CONVOY: Tally(ns, 1)}),))
    totals = replace(seen.totals, at_ns=at_ns, edges=found, held_up=held_up_of(found))
    return replace(seen, process=replace(PROCESS, pid=pid), totals=totals, since_ns=since_ns)


def _pairs(book: BlockingSeries, *seen: GilObservation) -> dict[tuple[str, ...], int]:
    pairs = book.series(seen)[_OWNER].pairs
    return {labels: ns for labels, ns, _ in pairs if labels[0] != "other" or ns}


def test_a_pair_is_that_of_all_processes() -> None:
    """
    One series for the same lines in all of them.
    """
    book = BlockingSeries(by_service=True)
    first = _pairs(book, _seen(1, 40 * MS, pid=1), _seen(1, 30 * MS, pid=2))

    second = _pairs(book, _seen(2, 45 * MS, pid=1), _seen(2, 37 * MS, pid=2))

    assert {_OTHER: 70 * MS, _PAIR: 0} == first
    assert {_OTHER: 70 * MS, _PAIR: 12 * MS} == second


def test_what_a_process_has_lost_stays_when_it_has_gone() -> None:
    """
    And one that takes its number adds its own.
    """
    book = BlockingSeries(by_service=True)
    _pairs(book, _seen(1, 40 * MS, pid=1), _seen(1, 30 * MS, pid=2))
    _pairs(book, _seen(2, 45 * MS, pid=1), _seen(2, 37 * MS, pid=2))
    gone = _pairs(book, _seen(3, 38 * MS, pid=2))

    again = _pairs(book, _seen(4, 39 * MS, pid=2), _seen(4, 3 * MS, pid=1, since_ns=3))

    assert 13 * MS == gone[_PAIR]
    assert 17 * MS == again[_PAIR]


def test_a_service_that_comes_back_continues() -> None:
    """
    Within minutes; after that it is a new one.
    """
    book = BlockingSeries(by_service=True)
    for at_ns, ns in ((1, 40 * MS), (2, 60 * MS)):
        _pairs(book, _seen(at_ns, ns))
    other = replace(PROCESS, name="other.py", pid=9)
    book.series([replace(_seen(3), process=other)])
    soon = _pairs(book, _seen(60 * _S, 5 * MS, since_ns=3))
    for at_s in (100, 401):
        book.series([replace(_seen(at_s * _S), process=other)])
    late = _pairs(book, _seen(402 * _S, 5 * MS, since_ns=400 * _S))

    assert {_OTHER: 40 * MS, _PAIR: 25 * MS} == soon
    assert {_OTHER: 5 * MS} == late


def test_others_are_another_service() -> None:
    """
    By name, by container, by pod.
    """
    book = BlockingSeries(by_service=True)
    processes = [
        PROCESS,
        replace(PROCESS, name="b.py"),
        replace(PROCESS, container_id="c1"),
        replace(PROCESS, pod_uid="p1"),
    ]
    seen = [
        replace(_seen(1, 40 * MS), process=replace(process, pid=pid))
        for pid, process in enumerate(processes)
    ]

    assert [40 * MS] * 4 == [
        sum(ns for _, ns, _ in blame.pairs) for blame in book.series(seen).values()
    ]


def test_roles_are_those_of_all_processes() -> None:
    """
    Four of the costliest have series of their own, the rest one together.
    """
    book = BlockingSeries(by_service=True)
    for at_ns in (1, 2):
        seen = [
            replace(
                _seen(at_ns, pid=pid),
                totals=replace(
                    _seen(at_ns).totals,
                    threads=tuple(
                        thread(tid, f"role {tid}", {Kind.CONVOY: Tally(at_ns * tid * _S, 1)})
                        for tid in range(1, 9)
                    ),
                ),
            )
            for pid in (1, 2)
        ]
        figures = {each.role: each.waits.ns for each in book.roles(seen)[_OWNER]}

    assert {"role 8", "role 7", "role 6", "other"} <= figures.keys()
    assert 5 == len(figures)
    assert 32 * _S == figures["role 8"]
    assert 2 * 2 * 36 * _S == sum(figures.values())


def test_series_are_few_whatever_the_processes_do() -> None:
    """
    Two for a pair, and one for a holder or who held the GIL.
    """
    book = BlockingSeries(by_service=True)
    most = PAIRS_OF_SERVICE
    for step in range(1, 20):
        seen = []
        for pid in range(5):
            edges = [
                Edge(
                    kind,
                    SERVING,
                    stack((f"work_{line}", "/srv/app.py", line, line)),
                    Tally(step * line * 20 * MS, step),
                )
                for line in range(pid + 1, pid + 30)
                for kind in (Kind.CONVOY, Kind.PREEMPTION)
            ]
            seen.append(_seen(step * _S, 0, edges, pid=pid))
        blame = book.series(seen)[_OWNER]

    def own(shown: Iterable[tuple[tuple[str, ...], int, int]]) -> int:
        return len([labels for labels, _, _ in shown if labels[0] != "other"])

    assert most == own(blame.pairs)
    assert most + most // 2 == own(blame.holders)
    lost_ns = sum(edge.lost.ns for each in seen for edge in each.totals.edges)
    assert lost_ns == sum(ns for _, ns, _ in blame.pairs)
    assert lost_ns == sum(ns for _, ns, _ in blame.holders)


def test_where_a_process_is_not_asked_there_is_nothing_about_slow_drops() -> None:
    """
    Its service has no such series, but where another of its processes is asked.
    """
    book = BlockingSeries(by_service=True)
    unasked = replace(_seen(1), process=replace(PROCESS, pid=1, asks_holder=False))

    assert () == book.series([unasked])[_OWNER].slow_holders
    assert ((("other",), 0, 0),) == book.series([unasked, _seen(1, pid=2)])[_OWNER].slow_holders


def test_what_was_lost_lately_is_told_of_each_process() -> None:
    """
    The page shows them one by one.
    """
    book = BlockingSeries(by_service=True)
    lately = book.lately([_seen(_S, 40 * MS, pid=1), _seen(_S, 30 * MS, pid=2)], most=5)

    assert {1: 40 * MS, 2: 30 * MS} == {pid: each.lost_ns for pid, each in lately.items()}


def test_what_is_not_trusted_for_a_moment_is_not_lost_twice() -> None:
    """
    A process whose figures come back is the one that it was.
    """
    book = BlockingSeries(by_service=True)
    other = _seen(1, pid=2)
    _pairs(book, _seen(1, 40 * MS), other)
    _pairs(book, replace(_seen(2, 50 * MS), invalid="for a moment"), other)

    assert {_OTHER: 40 * MS, _PAIR: 20 * MS} == _pairs(book, _seen(3, 60 * MS), other)


def test_what_is_much_is_forgotten_by_name_though_nobody_asks() -> None:
    """
    A page alone is enough for that, and so is --pairs 0; the sum is right all the same.
    """
    for pairs in (0, 4):
        book = BlockingSeries(pairs, by_service=True)
        for number in range(30):
            edges = [
                Edge(
                    Kind.CONVOY, SERVING, stack((f"f{number}_{line}", "/a.py", 1, line)), Tally(MS)
                )
                for line in range(200)
            ]
            book.lately([_seen(number, 0, edges, since_ns=number)], most=0)
        service = book.service(_OWNER)

        assert len(service.ledgers.pairs.lines) <= 4096 + 200
        assert 30 * 200 * MS == service.ledgers.pairs.ns
