"""Made-up observations of live transactions, for reports and collectors."""

from gilscope.model.gil import TracingCost
from gilscope.model.transactions import Library, Method, StmObservation, StmProcess, StmRecording
from gilscope.transactions.totals import RawStm, busiest_first, thread_of, totals_of
from gilscope.values import Record
from support.recordings.durations import histogram

__all__ = ["MS", "raw", "stm_observation", "stm_recording"]

MS = 1_000_000
_S = 1_000_000_000


def raw() -> RawStm:
    """Return what tables might hold: 30 commits of 2 ms, 10 aborts of 1 ms, 4 waits of 5 ms."""
    committed = histogram(*[2 * MS] * 30)
    aborted = histogram(*[MS] * 10)
    record: Record = {
        "traps": 200,
        "commits": 30,
        "aborts": 10,
        "cancels": 3,
        "unnamed": 2,
        "conflicts": 9,
        "wait_ns": (20 * MS, *[0] * 7),
        "waits": (4, *[0] * 7),
        "collected_ns": (6 * MS, 0),
        "collected": (3, 0),
        "restarts": (0, 7, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
        "committed_ns": committed.sum_ns,
        "committed_slots": committed.slots,
        "aborted_ns": aborted.sum_ns,
        "aborted_slots": aborted.slots,
    }
    name = b"worker".ljust(16, b"\0")
    thread = {
        "commits": 15,
        "committed_ns": 30 * MS,
        "aborts": 5,
        "aborted_ns": 5 * MS,
        "name": name,
    }
    threads: dict[int, Record] = {11: thread, 12: {**thread, "commits": 16}}
    return RawStm(2 * _S, record, threads, {"open": 1, "time": 4}, lost={"began_unseen": 1})


def stm_observation(
    library: Library = Library.RPYTHON,
    method: Method = Method.EVENTS,
    *,
    invalid: str = "",
    pid: int = 4711,
) -> StmObservation:
    """Return an observation of `raw` as *method* shows it."""
    process = StmProcess(
        pid, "app.py", library, method, "/usr/bin/pypy-stm", "b" * 40, ("x: a name",)
    )
    tables = raw()
    threads = busiest_first(thread_of(tid, record) for tid, record in tables.threads.items())
    return StmObservation(
        process,
        0,
        totals_of(process, tables, threads, {}),
        invalid,
        cost=TracingCost(4 * MS, 0.02, 200),
        observed_ns=2 * _S,
    )


def stm_recording(
    library: Library = Library.RPYTHON, method: Method = Method.EVENTS, *, invalid: str = ""
) -> StmRecording:
    """Return two seconds of `stm_observation`."""
    return StmRecording(stm_observation(library, method, invalid=invalid), 2 * _S)
