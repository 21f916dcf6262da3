"""What transactions have lost as a profile of pprof."""

from gilscope.model.session import Session
from gilscope.model.transactions import Library, Method, StmRecording
from gilscope.reports.renderers import RENDERERS
from support.recordings.gil import with_edges
from support.recordings.transactions import MS, stm_recording
from support.reports.pprof import Read, read


def _read(*transactions: StmRecording, has_gil: bool = False) -> Read:
    recordings = (with_edges(),) if has_gil else ()
    found = RENDERERS["pprof"](Session(2_000 * MS, "contention", recordings, transactions))
    assert isinstance(found, bytes)
    return read(found)


def _sums(found: Read) -> dict[tuple[str, str], int]:
    return {
        (kind, sample.stack[0][0]): value
        for sample in found.samples
        for (kind, _), value in zip(found.types, sample.values, strict=True)
        if value
    }


def test_aborts_pauses_and_reasons_have_types_of_their_own() -> None:
    """
    By thread, by what was waited for, and by reason; there is nothing of a GIL.
    """
    found = _read(stm_recording())

    assert {
        ("stm_aborts", "worker"): 10,
        ("stm_abort_cost", "worker"): 10 * MS,
        ("stm_pauses", "STM_WAIT_FREE_SEGMENT"): 4,
        ("stm_pause", "STM_WAIT_FREE_SEGMENT"): 20 * MS,
        ("stm_inevitable", "time"): 4,
        ("stm_inevitable", "other"): 2,
        ("stm_inevitable", "open"): 1,
    } == _sums(found)
    assert {"process": "app.py", "pid": "4711"} == found.samples[0].labels


def test_what_is_not_seen_has_no_sample() -> None:
    """
    Without a log reasons alone are known.
    """
    found = _read(stm_recording(Library.RPYTHON, Method.ENTRIES))

    assert {"stm_inevitable"} == {kind for kind, _ in _sums(found)}


def test_gil_and_transactions_are_one_profile() -> None:
    """
    Both have their types; what is shown first is that of the GIL.
    """
    found = _read(stm_recording(), has_gil=True)

    assert ["gil_waits", "stm_aborts"] == [found.types[at][0] for at in (0, 4)]
    assert "gil_held_up" == found.default
