"""What the transactions of a process have done since an earlier observation."""

from dataclasses import replace

from gilscope.model.gil import Tally
from gilscope.model.transactions import Method, StmThread
from gilscope.series.transactions.since import stm_observation_since
from support.recordings.durations import histogram
from support.recordings.transactions import MS, stm_observation

_EARLIER = stm_observation()


def test_sums_are_those_of_the_time_between() -> None:
    """
    Counts, times, waits by kind, reasons and losses; what has not changed is gone or zero.
    """
    totals = _EARLIER.totals
    assert totals.committed is not None
    later = replace(
        _EARLIER,
        observed_ns=3000 * MS,
        totals=replace(
            totals,
            at_ns=5000 * MS,
            commits=37,
            aborts=12,
            committed=totals.committed + histogram(*[2 * MS] * 7),
            waits={"STM_WAIT_FREE_SEGMENT": Tally(29 * MS, 6)},
            inevitable={"time": 9, "open": 1},
            threads=(StmThread(11, "worker", Tally(44 * MS, 22), Tally(7 * MS, 7)),),
        ),
    )

    since = stm_observation_since(later, _EARLIER)

    assert (2000 * MS, 1000 * MS) == (since.since_ns, since.observed_ns)
    assert (7, 2) == (since.totals.commits, since.totals.aborts)
    assert histogram(*[2 * MS] * 7) == since.totals.committed
    assert {"STM_WAIT_FREE_SEGMENT": Tally(9 * MS, 2)} == since.totals.waits
    assert {"time": 5} == since.totals.inevitable
    assert {} == since.totals.lost_events
    assert (StmThread(11, "worker", Tally(14 * MS, 7), Tally(2 * MS, 2)),) == since.totals.threads


def test_what_is_not_seen_stays_unknown() -> None:
    """
    It does not become zero.
    """
    seen = stm_observation(method=Method.BEGINS)
    since = stm_observation_since(seen, seen)

    assert (0, None, None) == (since.totals.commits, since.totals.aborts, since.totals.aborted)
    assert (None, None) == (since.totals.waits, since.totals.committed)
    assert () == since.totals.threads
