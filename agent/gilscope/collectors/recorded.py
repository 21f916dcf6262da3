"""The families of one recording, and its OpenMetrics text with the times of beginning and end.

A recording is over when it is written down, so nobody scrapes it: the text has to say itself when
each figure was true, and of which job and instance it is.
"""

from collections.abc import Iterable, Iterator

from gilscope.blame_book import final_series
from gilscope.collectors.exposition import head, metrics_of
from gilscope.collectors.families import Series
from gilscope.collectors.gil import series_of
from gilscope.model import Recording

__all__ = ["encode_with_times", "recorded_families"]

_JOB = "gilscope"
_NS_PER_MS = 1_000_000
_IN_LABELS = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def recorded_families(recording: Recording) -> Iterator[Series]:
    """Yield those families about the process of *recording* that have samples."""
    seen = recording.observation
    blames = {} if seen.invalid else {seen.process.pid: final_series(seen)}
    for series in series_of([seen], blames):
        if series.values or series.histograms:
            yield series


def encode_with_times(families: Iterable[Series], recording: Recording) -> str:
    """Return *families* as OpenMetrics: what counts stands at 0 when *recording* began.

    So an increase between its beginning and its end is what was counted. Each line also has the
    labels that Prometheus gives to what it scrapes.
    """
    ended_ms = recording.ended_ns // _NS_PER_MS
    # A series cannot have two values at one time, and Prometheus knows no less than milliseconds.
    began_ms = min(ended_ms - 1, (recording.ended_ns - recording.duration_ns) // _NS_PER_MS)
    host = recording.host.translate(_IN_LABELS)
    labels = f'job="{_JOB}",instance="{host}"'
    written = []
    for series in families:
        written.append(head(series.family, is_open=True))
        for metric in metrics_of(series):
            samples = [line.rpartition(" ") for line in metric.splitlines()]
            if series.family.type != "gauge":
                written += [_line(name, labels, "0", began_ms) for name, _, _ in samples]
            written += [_line(name, labels, value, ended_ms) for name, _, value in samples]
    return "".join((*written, "# EOF\n"))


def _line(name: str, labels: str, value: str, at_ms: int) -> str:
    # Every family about a process has labels already.
    at_s = f"{at_ms // 1000}.{at_ms % 1000:03}"
    return f"{name.removesuffix('}')},{labels}}} {value} {at_s}\n"
