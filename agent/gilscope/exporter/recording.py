"""The families of one recording, and its OpenMetrics text with the times of all its snapshots.

A recording is over when it is written down, so nobody scrapes it: the text has to say itself when
each figure was true, and of which job and instance it is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gilscope.exporter.exposition import head, metrics_of
from gilscope.exporter.gil import add_blame, add_gil, add_roles
from gilscope.exporter.samples import Series
from gilscope.exporter.targets import FAMILIES
from gilscope.metrics import table as metrics
from gilscope.metrics.table import Family
from gilscope.model.gil import GilObservation, Recording
from gilscope.series.blocking import series_over_time
from gilscope.series.by_name.blame_series import BlameSeries
from gilscope.series.by_name.owners import process_itself
from gilscope.series.roles import RoleFigures, roles_over_time

__all__ = ["encode_with_times", "recorded_families"]

_JOB = "gilscope"
_NS_PER_MS = 1_000_000
_IN_LABELS = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

_Points = list[tuple[int, str]]
"""Times in ms, and the lines of one set of labels then."""


def recorded_families(recordings: Iterable[Recording]) -> Iterator[Series]:
    """Yield those families about the processes of *recordings* that have samples at the end.

    Of several programs that one process has run, those about the last one.
    """
    last = _last_programs(recordings).values()
    families = {family: Series(family) for family in FAMILIES}
    for recording in last:
        (blame,), (roles,) = _series_over_time(recording, [recording.observation])
        _add(families, recording.observation, blame, roles)
    for series in families.values():
        if series.values or series.histograms:
            yield series


def encode_with_times(recordings: Iterable[Recording]) -> str:
    """Return the families of *recordings* as OpenMetrics: what counts is 0 when each began.

    Each line also has the labels that Prometheus gives to what it scrapes. Of several programs
    that one process has run, the last one is told.
    """
    families: dict[Family, dict[str, str]] = {}
    for recording in _last_programs(recordings).values():
        for family, lines in _points(recording).items():
            written = families.setdefault(family, {})
            for name, points in lines.items():
                written[name] = _written(family, points, recording)
    parts = (
        part
        for family, written in families.items()
        if written
        for part in (head(family, is_open=True), *written.values())
    )
    return "".join((*parts, "# EOF\n"))


def _last_programs(recordings: Iterable[Recording]) -> Mapping[int, Recording]:
    by_time = sorted(recordings, key=lambda each: each.ended_ns)
    return {each.observation.process.pid: each for each in by_time}


def _points(recording: Recording) -> Mapping[Family, Mapping[str, _Points]]:
    times = _times_ms(recording)
    _, ended_ms = _limits_ms(recording)
    seen = [*times.values(), recording.observation]
    families: dict[Family, dict[str, _Points]] = {}
    for at_ms, of_time in zip(
        (*times, ended_ms), _families_over_time(recording, seen), strict=True
    ):
        for series in of_time:
            points = families.setdefault(series.family, {})
            for metric in metrics_of(series):
                points.setdefault(_name(metric), []).append((at_ms, metric))
    return families


def _families_over_time(recording: Recording, seen: Sequence[GilObservation]) -> list[list[Series]]:
    blames, roles = _series_over_time(recording, seen)
    of_times = []
    for each, blame, of_roles in zip(seen, blames, roles, strict=True):
        families = {family: Series(family) for family in FAMILIES}
        _add(families, each, blame, of_roles)
        of_times.append(list(families.values()))
    return of_times


def _add(
    families: Mapping[Family, Series],
    seen: GilObservation,
    blame: BlameSeries | None,
    roles: Iterable[RoleFigures],
) -> None:
    owner = process_itself(seen.process)
    add_gil(families, owner, seen)
    add_roles(families, owner, roles)
    if not seen.invalid:
        families[metrics.TARGET_PROCESSES].add(owner, 0 if seen.ended else 1)
    if blame is not None:
        add_blame(families, owner, blame)


def _series_over_time(
    recording: Recording, seen: Sequence[GilObservation]
) -> tuple[Sequence[BlameSeries | None], Sequence[Sequence[RoleFigures]]]:
    if seen[-1].invalid:
        return [None] * len(seen), [()] * len(seen)
    blames = series_over_time(seen, recording.application)
    return blames, roles_over_time([each.totals.threads for each in seen])


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


def _written(family: Family, points: _Points, recording: Recording) -> str:
    host = recording.host.translate(_IN_LABELS)
    labels = f'job="{_JOB}",instance="{host}"'
    written = []
    if family.type != "gauge":
        began_ms, _ = _limits_ms(recording)
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
