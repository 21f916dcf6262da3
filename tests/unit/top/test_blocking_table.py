"""The lower pane: who keeps whom waiting."""

from dataclasses import replace

from gilscope.model.application import EVERYBODYS, Application
from gilscope.model.gil import HeldBy, HolderSamples, Tally
from gilscope.naming.places import SiteNames
from gilscope.top.blocking_table import (
    changes,
    details,
    frames,
    heading,
    held_by,
    kept_by,
    pair_ends,
    routes,
    rows,
    when_empty,
)
from gilscope.top.rates import rates
from support.recordings.gil import (
    CRUNCHING,
    MATCHING,
    MS,
    SERVING,
    convoy,
    with_edges,
    with_holders,
    with_traces,
)
from support.top.views import BUSY, IDLE, text, texts


def test_kept_by_names_the_applications_code() -> None:
    """
    With the share of what was lost in the interval, and where it stood below that.
    """
    (process,) = rates([], [BUSY])
    library = Application(packages=("match",))
    names = SiteNames()
    exact = replace(process, is_estimate=False)

    assert (
        "76 % crunch (app.py:4); 18 % Pattern.scan <café> (match.py:27)"
        == kept_by(exact, EVERYBODYS, names).partition("; (")[0]
    )
    assert "18 % Pattern.scan <café> (match.py:27)" in kept_by(exact, library, names)
    assert kept_by(exact, library, names).startswith("76 % (libraries alone), in crunch (app.py:4)")
    assert kept_by(process, EVERYBODYS, names).startswith("≈ 76 % crunch (app.py:4); ≈ 18 % ")
    assert "" == kept_by(replace(process, pairs=()), EVERYBODYS, names)


def test_routes_are_those_of_the_interval() -> None:
    """
    What a request has waited in it, and for whom.
    """
    (process,) = rates([], [with_traces().observation])
    names = SiteNames()

    assert (
        "POST /checkout 31 ms a request, behind crunch (app.py:4); "
        "no route 1.6 ms a request, behind handle (app.py:13)"
    ) == routes(process, EVERYBODYS, names)
    (still,) = rates([with_traces().observation], [with_traces().observation])
    assert "" == routes(still, EVERYBODYS, names)


def test_held_by_names_whoever_has_the_gil() -> None:
    """
    By samples, so with what they may be off; without samples there is nothing to be said.
    """
    (process,) = rates([], [with_holders().observation])

    assert (
        "≈ 50 % ±7 crunch (app.py:4); ≈ 20 % ±6 Pattern.scan <café> (match.py:27); "
        "≈ 10 % ±4 handle (app.py:13)"
    ) == held_by(process.holder_samples, EVERYBODYS, SiteNames())
    assert "" == held_by(None, EVERYBODYS, SiteNames())


def test_pairs_at_80_columns() -> None:
    """
    Two lines for each pair: what was lost, the kind and the two places, costliest first.
    """
    (process,) = rates([], [BUSY])
    table = rows(pair_ends(process.pairs, SiteNames()), process.elapsed_ns, 79)

    assert "lost ms/s   total s  kind, waiter and holder" == text(heading(79))
    assert [
        "    550.0       1.1  GIL_CONVOY         handle (app.py:13)",
        "                     held by            crunch (app.py:4)",
        "    175.0       0.3  GIL_CONVOY         handle (app.py:13)",
        "                     held by            Pattern.scan <café> (match.py:27)",
        "    170.0       0.3  GIL_PREEMPTION     crunch (app.py:4)",
        "                     held by            crunch (app.py:4)",
        "     35.0       0.1  GIL_PREEMPTION     crunch (app.py:4)",
        "                     held by            no Python code",
        "     25.0       0.1  GIL_CONVOY         handle (app.py:13)",
        "                     held by            unknown",
        "     15.0       0.0  GIL_BLOCKING_CALL  handle (app.py:13)",
        "                     held by            crunch (app.py:4)",
    ] == texts(table)


def test_stacks_with_the_same_ends_are_one_pair() -> None:
    """
    What lies between the thread's role and the place where it stood does not part them.
    """
    seen = with_edges().observation
    edge = seen.totals.edges[0]
    other = replace(edge, waiter=replace(SERVING, frames=SERVING.frames[:1]), lost=Tally(MS, 1))
    (process,) = rates([], [replace(seen, totals=replace(seen.totals, edges=(other, edge)))])

    (ends,) = pair_ends(process.pairs, SiteNames())

    assert (1101 * MS, 2) == (ends.lost_ns, len(ends.pairs))
    assert SERVING == ends.pairs[0].waiter
    assert "1 more pair of stacks ends in the same two places." == text(
        details(ends, process.elapsed_ns, SiteNames(), {}, 79)[-1]
    )


def test_details_are_both_stacks_with_their_source_lines() -> None:
    """
    Innermost first, each with its source line where it can be read, and what is missing in words.
    """
    (process,) = rates([], [BUSY])
    names = SiteNames()
    _, match, *_ = pair_ends(process.pairs, names)
    sources = {("/srv/app.py", 13): "os.read(fd, 1)"}

    assert (*SERVING.frames, *MATCHING.frames) == frames(match)
    assert [
        "GIL_CONVOY  175.0 ms/s lost lately, 0.3 s in 30 waits total",
        "",
        "waiting",
        "  handle (app.py:13)",
        "    os.read(fd, 1)",
        "  serve (app.py:9)",
        "  Thread.run (threading.py:975)",
        "  Thread._bootstrap_inner (threading.py:1038)",
        "  Thread._bootstrap (threading.py:995)",
        "",
        "held by",
        "  Pattern.scan <café> (match.py:27)",
        "  crunch (app.py:5)",
        "  Thread.run (threading.py:975)",
        "  deeper than what is noted",
    ] == [text(line) for line in details(match, process.elapsed_ns, names, sources, 79)]


def test_pane_says_why_it_is_empty() -> None:
    """
    Nobody waits, or nobody knows for whom.
    """
    held = HolderSamples(200, 2000 * MS, (HeldBy(CRUNCHING, 1900 * MS),))
    idle, busy, blind = rates(
        [],
        [
            IDLE,
            replace(IDLE, totals=replace(IDLE.totals, holder_samples=held)),
            convoy().observation,
        ],
    )

    assert "No thread has had to wait for another since the process is traced." == when_empty(idle)
    assert when_empty(busy).splitlines()[1:] == [
        "That is no contention: whatever is slow here does not wait for the GIL.",
        "Python code has the GIL for most of the time: what costs that time is above, at held by.",
    ]
    assert when_empty(blind).startswith("Threads wait, but who keeps them waiting is not known")


def test_changes_are_told_while_they_are_worth_it() -> None:
    """
    By all that was seen, in one line; nothing of a process that has ended, or loses nothing.
    """
    (process,) = rates([], [with_edges().observation])
    line = changes(process, EVERYBODYS)

    assert line.startswith("crunch (app.py:4) in another process: at most ")
    assert "; sys.setswitchinterval(0.0005) instead of 0.005: ≈ 589 us to 10.5 ms for each" in line
    assert "" == changes(replace(process, ended=True), EVERYBODYS)
    assert "" == changes(rates([], [IDLE])[0], EVERYBODYS)
