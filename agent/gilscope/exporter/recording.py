"""The families of one recording, and its OpenMetrics text with the times of all its snapshots.

A recording is over when it is written down, so nobody scrapes it: the text has to say itself when
each figure was true, and of which job and instance it is.
"""

from collections.abc import Iterator, Mapping, Sequence

from gilscope.exporter.exposition import head, metrics_of
from gilscope.exporter.gil import series_of
from gilscope.exporter.samples import Series
from gilscope.metrics.table import Family
from gilscope.model.gil import GilObservation, Recording
from gilscope.series.blocking import series_over_time
from gilscope.series.roles import roles_over_time

__all__ = ["encode_with_times", "recorded_families"]

_JOB = "gilscope"
_NS_PER_MS = 1_000_000
_IN_LABELS = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

_Points = list[tuple[int, str]]
"""Times in ms, and the lines of one set of labels then."""


def recorded_families(recording: Recording) -> Iterator[Series]:
    """Yield those families about the process of *recording* that have samples at its end."""
    for series in _families_over_time(recording, [recording.observation])[-1]:
        if series.values or series.histograms:
            yield series


def encode_with_times(recording: Recording) -> str:
    """Return the families of *recording* as OpenMetrics: what counts is 0 when it began.

    Each line also has the labels that Prometheus gives to what it scrapes.
    """
    times = _times_ms(recording)
    host = recording.host.translate(_IN_LABELS)
    labels = f'job="{_JOB}",instance="{host}"'
    began_ms, ended_ms = _limits_ms(recording)
    seen = [*times.values(), recording.observation]
    families: dict[Family, dict[str, _Points]] = {}
    for at_ms, of_time in zip(
        (*times, ended_ms), _families_over_time(recording, seen), strict=True
    ):
        for series in of_time:
            points = families.setdefault(series.family, {})
            for metric in metrics_of(series):
                points.setdefault(_name(metric), []).append((at_ms, metric))
    written = [_written(family, metrics, labels, began_ms) for family, metrics in families.items()]
    return "".join((*written, "# EOF\n"))


def _families_over_time(recording: Recording, seen: Sequence[GilObservation]) -> list[list[Series]]:
    if seen[-1].invalid:
        return [list(series_of([each], {}, {})) for each in seen]
    blames = series_over_time(seen, recording.application)
    roles = roles_over_time([each.totals.threads for each in seen])
    return [
        list(series_of([each], {each.process.pid: blame}, {each.process.pid: of_roles}))
        for each, blame, of_roles in zip(seen, blames, roles, strict=True)
    ]


def _limits_ms(recording: Recording) -> tuple[int, int]:
    ended_ms = recording.ended_ns // _NS_PER_MS
    # A series cannot have two values at one time, and Prometheus knows no less than milliseconds.
    return min(ended_ms - 1, (recording.ended_ns - recording.duration_ns) // _NS_PER_MS), ended_ms


def _times_ms(recording: Recording) -> Mapping[int, GilObservation]:
    """Return the snapshots between the beginning and the end, by their times."""
    if recording.observation.invalid:
        return {}
    began_ms, ended_ms = _limits_ms(recording)
    last_ns = recording.observation.totals.at_ns
    times = {
        (recording.ended_ns - (last_ns - look.totals.at_ns)) // _NS_PER_MS: look
        for look in recording.snapshots
    }
    return {at_ms: look for at_ms, look in times.items() if began_ms < at_ms < ended_ms}


def _written(family: Family, metrics: Mapping[str, _Points], labels: str, began_ms: int) -> str:
    if not metrics:
        return ""
    written = [head(family, is_open=True)]
    for points in metrics.values():
        if family.type != "gauge":
            written += [_line(line, labels, began_ms, "0") for line in _lines(points[0][1])]
        for at_ms, metric in points:
            written += [_line(line, labels, at_ms) for line in _lines(metric)]
    return "".join(written)


def _lines(metric: str) -> list[str]:
    return metric.removesuffix("\n").split("\n")


def _name(metric: str) -> str:
    return metric.partition("\n")[0].rpartition(" ")[0]


def _line(line: str, labels: str, at_ms: int, value: str = "") -> str:
    # Every family about a process has labels already.
    name, _, its_value = line.rpartition(" ")
    at_s = f"{at_ms // 1000}.{at_ms % 1000:03}"
    return f"{name.removesuffix('}')},{labels}}} {value or its_value} {at_s}\n"
