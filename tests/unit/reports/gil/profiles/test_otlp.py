"""The recording as profiles of OTLP, read with OpenTelemetry's own messages."""

import json
from dataclasses import replace

import pytest

from gilscope.model.gil import Recording
from gilscope.reports.gil.profiles import otlp, pprof
from support.recordings.gil import MS, convoy, with_edges, with_holders, with_native_calls
from support.reports.otlp_profiles import Read, read
from support.reports.pprof import read as read_pprof

_TYPES = ("gil_held_up", "gil_waits", "gil_wait", "gil_hold")


def _read(*recordings: Recording) -> list[Read]:
    return read(otlp.render(*recordings))


def _worker(recording: Recording) -> Recording:
    seen = recording.observation
    process = replace(seen.process, pid=4712, name="worker.py", container_id="c0", pod_uid="p0")
    return replace(recording, observation=replace(seen, process=process), host="db7")


def _of_pprof(recording: Recording, kind: str) -> list[tuple[object, ...]]:
    found = read_pprof(pprof.render(recording))
    at = [name for name, _ in found.types].index(kind)
    return sorted(
        (
            each.stack,
            each.values[at],
            sorted(each.labels.items() - {("process", "app.py"), ("pid", "4711")}),
            each.programs,
        )
        for each in found.samples
        if each.values[at]
    )


@pytest.mark.parametrize("recording", [with_holders(), with_native_calls()])
def test_samples_are_those_of_pprof(recording: Recording) -> None:
    """
    One profile for each of its types, the one that viewers are to show first.
    """
    found = _read(recording)

    assert _TYPES == tuple(profile.type[0] for profile in found)
    assert {("gil_waits", "count")} == {each.type for each in found if each.type[1] == "count"}
    for profile in found:
        assert _of_pprof(recording, profile.type[0]) == sorted(
            (each.stack, *each.values, sorted(each.labels.items()), each.programs)
            for each in profile.samples
        )


def test_processes_are_resources() -> None:
    """
    What is in the dictionary is shared.
    """
    first, second = with_edges(), _worker(with_edges())
    found = _read(first, second)
    process = first.observation.process

    assert [process.pid] * 3 + [4712] * 3 == [each.resource["process.pid"] for each in found]
    assert {
        "service.name": "worker.py",
        "process.pid": 4712,
        "process.runtime.name": "cpython",
        "process.runtime.version": process.python,
        "container.id": "c0",
        "k8s.pod.uid": "p0",
        "host.name": "db7",
    } == found[-1].resource
    assert found[0].total == found[3].total > 0
    assert 1 == otlp.render(first, second).count('"/srv/app.py"')


def test_when_it_was_recorded() -> None:
    """
    From the beginning; the period is that of holds alone.
    """
    found = _read(replace(with_holders(), ended_ns=1_800_000_000_000_000_000))

    assert {(1_799_999_998_000_000_000, 2_000_000_000)} == {
        (each.began_ns, each.duration_ns) for each in found
    }
    assert [("", 0)] * 3 + [("gil_hold", 10 * MS)] == [each.period for each in found]


def test_what_is_missing_is_a_comment() -> None:
    """
    A process of which nothing was counted has one profile, which says so.
    """
    (found,) = _read(convoy())

    assert ("gil_held_up", []) == (found.type[0], found.samples)
    assert found.comments[0].endswith("app.py, pid 4711: 2.000s in contention mode")
    assert found.comments[1].startswith("app.py, pid 4711: not counted in full: 2 waits begun")


def test_nothing_is_in_it_that_nothing_refers_to() -> None:
    """
    One line, the same for the same recording.
    """
    text = otlp.render(with_holders())
    dictionary = json.loads(text)["dictionary"]
    words = json.dumps(json.loads(text)["resourceProfiles"])

    assert "\n" == text[-1:]
    assert 1 == text.count("\n")
    assert otlp.render(with_holders()) == text
    assert len(set(map(json.dumps, dictionary["stackTable"]))) == len(dictionary["stackTable"])
    for number in range(1, len(dictionary["stackTable"])):
        assert f'"stackIndex": {number},' in words


def test_no_process_is_no_profile() -> None:
    """
    A request all the same.
    """
    assert [] == _read()
