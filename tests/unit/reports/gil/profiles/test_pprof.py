"""The recording as a profile of pprof."""

from collections import Counter
from dataclasses import replace

from gilscope.model.application import Application
from gilscope.model.gil import Recording
from gilscope.reports.gil.profiles import pprof
from support.recordings.gil import MS, convoy, with_edges, with_holders, with_native_calls
from support.reports.pprof import Read, read

_RUNS = ["Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap"]


def _read(*recordings: Recording) -> Read:
    return read(pprof.render(*recordings))


def _stacks(found: Read, name: str) -> dict[tuple[str, ...], int]:
    at = [kind for kind, _ in found.types].index(name)
    sums: Counter[tuple[str, ...]] = Counter()
    for sample in found.samples:
        if sample.values[at]:
            sums[tuple(function for function, *_ in sample.stack)] += sample.values[at]
    return sums


def test_waits_are_where_threads_waited() -> None:
    """
    Nanoseconds and numbers by stack, innermost first.
    """
    found = _read(with_edges())

    serving, crunching = ("handle", "serve", *_RUNS), ("crunch", *_RUNS)
    assert {serving: 1530 * MS, crunching: 410 * MS} == _stacks(found, "gil_wait")
    assert {serving: 150, crunching: 110} == _stacks(found, "gil_waits")


def test_what_others_lost_is_where_the_holder_stood() -> None:
    """
    A stack that lacks something says so where it does.
    """
    assert {
        ("crunch", *_RUNS): 1130 * MS,
        ("Pattern.scan <café>", "crunch", "Thread.run", "[deeper than what is noted]"): 350 * MS,
        ("[stack changed while being read]", "crunch", *_RUNS): 340 * MS,
        ("[no Python code]",): 70 * MS,
        ("[unknown]",): 50 * MS,
    } == _stacks(_read(with_edges()), "gil_held_up")


def test_both_ends_have_all_that_was_lost() -> None:
    """
    Each type adds up to the time of all edges, to the nanosecond.
    """
    recording = with_holders()
    found = _read(recording)
    lost_ns = sum(edge.lost.ns for edge in recording.observation.totals.edges)

    assert [lost_ns, lost_ns, 1600 * MS] == [
        found.total(name) for name in ("gil_wait", "gil_held_up", "gil_hold")
    ]


def test_each_end_says_where_the_other_stood() -> None:
    """
    Kind, the role of the thread, and the application's place at the other end.
    """
    found = _read(with_edges())
    process = {"process": "app.py", "pid": "4711"}
    by_type = {
        at: {tuple(sorted(each.labels.items())) for each in found.samples if each.values[at]}
        for at in (1, 2)
    }

    waiting = {**process, "kind": "GIL_CONVOY", "role": "serve (app.py:8)"}
    assert {"crunch (app.py:4)", "Pattern.scan <café> (match.py:27)", "(unknown)"} == {
        dict(labels)["holder"] for labels in by_type[1] if waiting.items() <= dict(labels).items()
    }
    holding = {**process, "kind": "GIL_PREEMPTION", "role": "no Python code"}
    assert {**holding, "waiter": "crunch (app.py:4)"} in [dict(labels) for labels in by_type[2]]


def test_the_application_is_what_the_user_says() -> None:
    """
    As in all reports.
    """
    recording = replace(with_edges(), application=Application(folders=("/srv/lib",)))
    labels = [sample.labels for sample in _read(recording).samples]

    assert {
        *("Pattern.scan <café> (match.py:27)", "(libraries alone)", "(no Python code)"),
        "(unknown)",
    } == {each["holder"] for each in labels if "holder" in each}


def test_frames_have_their_files_and_lines() -> None:
    """
    Those of the ``def`` and those that ran; words in brackets have none.
    """
    places = {place for sample in _read(with_edges()).samples for place in sample.stack}

    assert {("crunch", "/srv/app.py", 2, 4), ("crunch", "/srv/app.py", 2, 5)} <= places
    assert ("[unknown]", "", 0, 0) in places


def test_holds_are_where_samples_found_them() -> None:
    """
    The period is what one sample stands for.
    """
    found = _read(with_holders())

    assert 1000 * MS == _stacks(found, "gil_hold")[("crunch", *_RUNS)]
    assert ("gil_hold", 10 * MS) == found.period
    assert "app.py, pid 4711: gil_hold is estimated from 200 samples" in found.comments


def test_when_it_was_recorded() -> None:
    """
    From the beginning, for as long as it took.
    """
    recording = replace(with_edges(), ended_ns=1_800_000_000_000_000_000)
    found = _read(recording)

    assert (1_799_999_998_000_000_000, 2_000_000_000) == (found.began_ns, found.duration_ns)
    # Without samples the type is there all the same, by which stores know the others.
    assert ("gil_hold", 0) == found.period
    assert "gil_held_up" == found.default


def test_processes_are_told_apart_by_labels() -> None:
    """
    Stacks are shared, sums are of both.
    """
    recording = with_edges()
    seen = recording.observation
    worker = replace(seen, process=replace(seen.process, pid=4712, name="worker.py"))
    found = _read(recording, replace(recording, observation=worker))

    assert {("app.py", "4711"), ("worker.py", "4712")} == {
        (sample.labels["process"], sample.labels["pid"]) for sample in found.samples
    }
    assert 2 * _read(recording).total("gil_wait") == found.total("gil_wait")


def test_what_is_missing_is_a_comment() -> None:
    """
    What was not counted, and why nothing is reported.
    """
    recording = convoy()
    seen = recording.observation
    spoilt = replace(recording, observation=replace(seen, invalid="why"))

    found = _read(recording)

    assert [] == found.samples
    assert found.comments[0].endswith("app.py, pid 4711: 2.000s in contention mode")
    assert found.comments[1].startswith("app.py, pid 4711: not counted in full: 2 waits begun")
    assert _read(spoilt).comments[0].endswith("nothing is reported, because why")


def test_the_same_recording_is_the_same_file() -> None:
    """
    No time of writing is in it.
    """
    assert pprof.render(with_holders()) == pprof.render(with_holders())


def test_holds_say_why_the_gil_was_kept() -> None:
    """
    Nothing else does: what others lost is not told by state.
    """
    found = _read(with_native_calls())
    held: Counter[str | None] = Counter()
    for sample in found.samples:
        held[sample.labels.get("state")] += sample.values[3]

    assert {None: 0, "native": 600 * MS, "unknown": 600 * MS} == held


def test_calls_in_c_are_on_top_of_the_stack_of_the_holder() -> None:
    """
    Functions without a name by their file.
    """
    held = _stacks(_read(with_native_calls()), "gil_hold")

    assert (
        600 * MS
        == held[("longest_match", "deflate", "zlib.so", "_PyObject_MakeTpCall", "crunch", *_RUNS)]
    )
