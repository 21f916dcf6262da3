"""What the report for programs says of one process."""

import json as standard_json
from dataclasses import replace

from gilscope.model.gil import Recording, Tally
from gilscope.model.stack import Frame, Stack
from gilscope.reports import session_json
from gilscope.reports.gil import json
from support.commands.json_reports import frames_of, only_process, state_of
from support.recordings.gil import convoy, full_mode, session_of, with_edges


def _spoilt() -> Recording:
    recording = full_mode()
    return replace(recording, observation=replace(recording.observation, invalid="why"))


def test_report_adds_up() -> None:
    """
    Totals are the sums of the threads; the histogram counts finished waits only.
    """
    report = only_process(session_json.render(session_of(convoy())))

    assert (2, "contention", 2.0) == (report["version"], report["mode"], report["duration_s"])
    assert (1.94, 235) == (report["totals"]["wait_s"], report["totals"]["waits"])
    assert [1.53, 0.2, 0.21] == [thread["wait_s"] for thread in report["threads"]]
    assert 235 == sum(count for _, count in report["histograms"]["wait"])
    assert {"began_unseen": 2} == report["totals"]["lost_events"]


def test_what_the_mode_cannot_measure_is_null() -> None:
    """
    A zero would say that there were no holds.
    """
    report = json.report(convoy())

    assert report["totals"]["hold_s"] is None
    assert report["totals"]["holds"] is None
    assert report["totals"]["acquires"] is None
    assert report["totals"]["acquires_estimated"] is None
    assert report["totals"]["held_s"] is None
    assert report["totals"]["observed_s"] is None
    assert report["totals"]["overhead_s"] is None
    assert report["histograms"]["hold"] is None
    assert report["histograms"]["switch_latency"] is None
    assert [(None, None)] * 3 == [
        (thread["hold_s"], thread["holds"]) for thread in report["threads"]
    ]
    (interpreter,) = report["interpreters"]
    assert [None] * 3 == [interpreter[key] for key in ("hold_s", "holds", "held_s")]


def test_full_mode_reports_holds_in_all_places() -> None:
    """
    Totals are the sums of the threads; an interpreter's are those of its lock.
    """
    report = only_process(session_json.render(session_of(full_mode())))

    totals = report["totals"]
    assert (1.8, 475, 1.8) == (totals["hold_s"], totals["holds"], totals["held_s"])
    assert (475, False) == (totals["acquires"], totals["acquires_estimated"])
    assert (2.0, 0.0024) == (totals["observed_s"], totals["overhead_s"])
    assert [[0.05, 125], [0.9, 180], [0.85, 170]] == [
        [thread["hold_s"], thread["holds"]] for thread in report["threads"]
    ]
    (interpreter,) = report["interpreters"]
    assert [1.8, 475, 1.8] == [interpreter[key] for key in ("hold_s", "holds", "held_s")]
    assert 475 == sum(count for _, count in report["histograms"]["hold"])
    assert 235 == dict(report["histograms"]["switch_latency"])[1.2634e-05]


def test_buckets_are_bounds_with_their_own_counts() -> None:
    """
    110 waits of 4 ms lie between 3.85 and 4.19 ms; the last bucket has no bound.
    """
    buckets = json.report(convoy())["histograms"]["wait"]

    at = buckets.index([0.004194304, 110])
    assert [0.003846194, 0] == buckets[at - 1]
    assert [None, 0] == buckets[-1]


def test_invalid_observation_says_so() -> None:
    """
    A program finds the reason beside the flag.
    """
    report = json.report(_spoilt())

    assert (False, "why") == (report["process"]["valid"], report["process"]["invalid_reason"])
    assert {None} == {value for key, value in report["totals"].items() if key != "lost_events"}
    assert report["histograms"]["wait"] is None


def test_unknown_causes_are_null() -> None:
    """
    Without causes nobody can say how many waits were convoys or yields.
    """
    recording = convoy()
    seen = recording.observation
    blind = replace(seen, process=replace(seen.process, method="libc", knows_causes=False))

    report = json.report(replace(recording, observation=blind))

    assert (None, None) == (
        report["totals"]["convoy_waits"],
        report["totals"]["forced_switches"],
    )
    assert [None] * 3 == [thread["forced_switches"] for thread in report["threads"]]


_FRAME = {"function": "handle", "file": "/srv/app.py", "line": 13, "first_line": 11}


def test_edges_have_both_ends() -> None:
    """
    Innermost frame first, each stack with how much of it was seen.
    """
    report = only_process(session_json.render(session_of(with_edges())))

    costliest = report["edges"][0]
    waiter = frames_of(report, costliest["waiter"])
    assert ("GIL_CONVOY", 1.1, 90) == (costliest["kind"], costliest["wait_s"], costliest["waits"])
    assert _FRAME == waiter[0]
    assert ["handle", "serve"] == [frame["function"] for frame in waiter[:2]]
    assert [13, 9, 975, 1038, 995] == [frame["line"] for frame in waiter]
    holders = [edge["holder"] for edge in report["edges"]]
    assert [4, 3, 4, 0, 0, 4] == [len(frames_of(report, holder)) for holder in holders]
    assert {"whole"} == {state_of(report, edge["waiter"]) for edge in report["edges"]}
    assert ["whole", "cut", "torn", "no_python", "unknown", "whole"] == [
        state_of(report, holder) for holder in holders
    ]
    assert [1.1, 0.35, 0.34, 0.07, 0.05, 0.03] == [edge["wait_s"] for edge in report["edges"]]


def test_stacks_and_frames_are_there_once() -> None:
    """
    And each is used, so a report of thousands of edges is not many times as large.
    """
    report = json.report(with_edges())
    used = {edge[end] for edge in report["edges"] for end in ("waiter", "holder")}
    used |= {slow_drop["holder"] for slow_drop in report["slow_drops"]}

    assert used == set(range(len(report["stacks"])))
    assert {frame for stack in report["stacks"] for frame in stack["frames"]} == set(
        range(len(report["frames"]))
    )
    for part in (report["stacks"], report["frames"]):
        assert len(part) == len({standard_json.dumps(each) for each in part})


def test_slow_drops_have_their_place() -> None:
    """
    Where it was, how often, how long in all, and at the most.
    """
    report = json.report(with_edges())
    first, second = report["slow_drops"]

    assert (0.26, 12, 0.041, "cut") == (
        first["drop_latency_s"],
        first["requests"],
        first["longest_s"],
        state_of(report, first["holder"]),
    )
    assert {
        "function": "Pattern.scan <café>",
        "file": "/srv/lib/match.py",
        "line": 27,
        "first_line": 20,
    } == frames_of(report, first["holder"])[0]
    assert ("no_python", []) == (
        state_of(report, second["holder"]),
        frames_of(report, second["holder"]),
    )


def test_line_that_is_not_known_is_null() -> None:
    """
    The first line is that of the function all the same.
    """
    recording = with_edges()
    totals = recording.observation.totals
    lineless = Stack((Frame("handle", "/srv/app.py", 11),))
    edges = (replace(totals.edges[0], waiter=lineless),)
    seen = replace(recording.observation, totals=replace(totals, edges=edges))

    report = json.report(replace(recording, observation=seen))
    (edge,) = report["edges"]

    assert [{**_FRAME, "line": None}] == frames_of(report, edge["waiter"])


def test_nobody_who_waited_is_an_empty_list() -> None:
    """
    No edges and no slow_drops were seen: that is a figure.
    """
    report = json.report(convoy())

    assert ([], []) == (report["edges"], report["slow_drops"])


def _unknown(recording: Recording, **process: object) -> dict[str, str]:
    seen = recording.observation
    changed = replace(seen, process=replace(seen.process, **process))  # type: ignore[arg-type]
    found = json.report(replace(recording, observation=changed))["process"]["unknown"]
    assert isinstance(found, dict)
    return found


def test_what_is_null_says_why() -> None:
    """
    The mode, the method, what was not asked for, and what the runtime cannot have.
    """
    blind = {"method": "libc", "knows_causes": False}

    assert {"hold_s", "holds", "observed_s", "hold", "switch_latency"} == set(_unknown(convoy()))
    assert "full mode" in _unknown(convoy())["holds"]
    assert {} == _unknown(full_mode())
    assert {"forced_switches", "convoy_waits"} == set(_unknown(full_mode(), **blind))
    assert "the libc method sees no holds" == _unknown(convoy(), **blind)["holds"]
    turns = _unknown(full_mode(), asks_holder=False)
    assert {"drop_requests", "drop_latency", "slow_drops", "switch_interval_s"} == set(turns)
    semaphore = _unknown(full_mode(), asks_holder=False, wakes_in_vain=True)
    assert {"forced_switches"} == set(semaphore) - set(turns)
    assert "in any mode" in _unknown(convoy(), asks_holder=False, shows_holds=False)["holds"]
    assert {} == json.report(_spoilt())["process"]["unknown"]


def test_without_stacks_their_lists_say_so() -> None:
    """
    They are null, which is not the same as empty.
    """
    recording = full_mode()
    seen = recording.observation
    bare = replace(seen, totals=replace(seen.totals, has_stacks=False))
    report = json.report(replace(recording, observation=bare))

    unknown = report["process"]["unknown"]
    assert {"edges", "slow_drops", "held_by", "held_up", "samples", "sampled_s"} == set(unknown)
    assert {None} == {report[name] for name in ("edges", "slow_drops", "held_by", "held_up")}


def test_what_a_lock_that_is_not_asked_for_cannot_have_is_null() -> None:
    """
    Requests and their figures are null, failed wake-ups are not; with CPython 3 it is reversed.
    """
    recorded = convoy()
    seen = recorded.observation
    threads = tuple(
        replace(each, failed_wakeups=Tally(250_000_000, 3)) for each in seen.totals.threads
    )
    semaphore = replace(
        recorded,
        observation=replace(
            seen,
            process=replace(seen.process, asks_holder=False, wakes_in_vain=True),
            totals=replace(seen.totals, threads=threads, check_interval=100),
        ),
    )
    of_27, of_3 = (
        only_process(session_json.render(session_of(each))) for each in (semaphore, recorded)
    )
    asked = ("forced_switches", "drop_requests")
    failed = ("failed_wakeups", "failed_wakeup_wait_s")

    assert [None, None] == [of_27["totals"][key] for key in asked]
    assert (None, None) == (of_27["histograms"]["drop_latency"], of_27["slow_drops"])
    assert [3 * len(threads), 0.25 * len(threads)] == [of_27["totals"][key] for key in failed]
    assert [(None, 100)] == [
        (one["switch_interval_s"], one["check_interval"]) for one in of_27["interpreters"]
    ]
    assert {None} == {of_3["totals"][key] for key in failed}
    assert {None} == {thread[key] for thread in of_3["threads"] for key in failed}
    assert None not in [of_3["totals"][key] for key in asked]
