"""A real Pyroscope stores profiles of pprof, and has what was recorded when it is asked."""

import base64
import json
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import started
from gilscope.reports.gil.profiles import pprof
from support.commands.gilscope import eventually, gilscope
from support.receivers.programs import storing_profiles
from support.recordings.gil import MS, with_edges
from support.reports.pprof import Read, read

pytestmark = pytest.mark.live

_PUSH = "push.v1.PusherService/Push"


@pytest.fixture(scope="module")
def pyroscope() -> Iterator[str]:
    """The address of one that runs."""
    with storing_profiles() as address:
        yield address


def _asked(pyroscope: str, path: str, request: Mapping[str, object] | None = None) -> Any:
    """Return what it answers, to a *request* in JSON if there is one."""
    asked = urllib.request.Request(
        f"http://{pyroscope}/{path}",
        None if request is None else json.dumps(request).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310 - of the loopback
        return json.load(answer)


def _push(pyroscope: str, service: str, profile: bytes) -> None:
    labels = {"__name__": "gil", "service_name": service}
    series = {
        "labels": [{"name": name, "value": value} for name, value in labels.items()],
        "samples": [{"rawProfile": base64.b64encode(profile).decode()}],
    }
    _asked(pyroscope, _PUSH, {"series": [series]})


def _flames(pyroscope: str, service: str, kind: str, unit: str) -> Any:
    """Return the flame graph of one type of sample, as soon as there is one."""
    query = f'gil:{kind}:{unit}:gil_hold:nanoseconds{{service_name="{service}"}}'
    words = urllib.parse.urlencode({"query": query, "from": "now-1h", "until": "now+1h"})

    def found() -> Any:
        flames = _asked(pyroscope, f"pyroscope/render?{words}")["flamebearer"]
        return flames if flames["numTicks"] else None

    return eventually(found)


def _functions(profile: Read, kind: str) -> set[str]:
    at = [name for name, _ in profile.types].index(kind)
    return {place[0] for sample in profile.samples if sample.values[at] for place in sample.stack}


@pytest.mark.parametrize("mode", ["contention", "full"])
def test_it_has_what_was_recorded(pyroscope: str, tmp_path: Path, mode: str) -> None:
    """
    All types, to the nanosecond, with the functions of their stacks.
    """
    file = tmp_path / "waits.pb.gz"
    with started(["/usr/bin/python3"], "crowd.py") as workload:
        pid = str(workload.pid)
        outcome = gilscope("record", "-p", pid, "-d", "1", "--mode", mode, "-o", str(file))
    assert 0 == outcome.exit_code, outcome.messages
    profile = read(file.read_bytes())
    _push(pyroscope, mode, file.read_bytes())

    for kind, unit in profile.types:
        flames = _flames(pyroscope, mode, kind, unit)

        assert profile.total(kind) == flames["numTicks"]
        assert _functions(profile, kind) == set(flames["names"]) - {"total"}


def test_without_samples_of_holders_types_have_the_same_names(pyroscope: str) -> None:
    """
    Of some processes there are none.
    """
    recording = replace(with_edges(), ended_ns=time.time_ns())
    _push(pyroscope, "old", pprof.render(recording))

    assert 1940 * MS == _flames(pyroscope, "old", "gil_wait", "nanoseconds")["numTicks"]
