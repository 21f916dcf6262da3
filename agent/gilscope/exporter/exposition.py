"""Writes families down as Prometheus wants them: as text of two kinds, or as messages.

prometheus_client can do that too, at 7 to 10 us a line: each is a sample of its own, with a
dictionary of its labels that is sorted and escaped again for every bucket of a histogram. Here the
labels of a histogram are written once, so that 200 processes are a scrape like any other. The tests
hold what comes out against the library.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache

from prometheus_client.exposition import choose_encoder

from gilscope.exporter import native
from gilscope.exporter.samples import Exemplar, Labels, Series
from gilscope.metrics.table import PID, PROCESS_LABELS, Family
from gilscope.model.histogram import BOUNDS_NS, Histogram, upto_bounds
from gilscope.text.units import NS_PER_S

__all__ = ["encode", "head", "metrics_of", "negotiate"]

_OPEN_METRICS = "application/openmetrics-text"
_PROTOBUF = "application/vnd.google.protobuf"
_MESSAGE = {"proto": "io.prometheus.client.metricfamily", "encoding": "delimited"}

_HEAD = "\0"
"""Stands for what all buckets of a histogram begin with."""
_BUCKETS = "".join(
    f'{_HEAD}le="{le}"}} %d\n' for le in (*(repr(ns / NS_PER_S) for ns in BOUNDS_NS), "+Inf")
)
"""The buckets of a histogram, without their counts."""

_SHARED = len(PROCESS_LABELS)
_PROCESSES = 4096
"""Whose labels are not written anew for each line."""
_VALUES = 8192
"""Of labels that are not escaped anew for each line: a site is part of many pairs."""

_IN_LABELS = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_IN_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})


def negotiate(accept: str) -> str:
    """Return the content type that a client with this Accept header understands best."""
    if _prefers_native(accept):
        return native.CONTENT_TYPE
    _, content_type = choose_encoder(accept)
    # Names are plain ASCII, which no scheme of escaping would need to change.
    return content_type.partition("; escaping=")[0]


def _prefers_native(accept: str) -> bool:
    """Return whether Protocol Buffers are what a client likes at least as much as all else."""
    qualities: dict[bool, float] = {True: 0.0, False: 0.0}
    for each in accept.split(","):
        kind, *parameters = (part.strip() for part in each.lower().split(";"))
        given = dict(part.partition("=")[::2] for part in parameters)
        try:
            quality = float(given.get("q", 1))
        except ValueError:
            continue
        is_native = kind == _PROTOBUF and _MESSAGE.items() <= given.items()
        qualities[is_native] = max(qualities[is_native], quality)
    return qualities[True] > 0 and qualities[True] >= qualities[False]


def encode(families: Iterable[Series], content_type: str) -> bytes:
    """Return *families* as *content_type* wants them; each is written before the next is asked for.

    Whole numbers come out as such. A family without samples is announced all the same.
    """
    if content_type == native.CONTENT_TYPE:
        return native.encode_native(families)
    is_open = content_type.startswith(_OPEN_METRICS)
    written = [_written(series, is_open=is_open) for series in families]
    if is_open:
        written.append(b"# EOF\n")
    return b"".join(written)


def head(family: Family, *, is_open: bool) -> str:
    """Return the lines that announce *family*, in OpenMetrics or in the older format."""
    # OpenMetrics names a family of counters without what its samples end in, and escapes the
    # help text like a label.
    is_short = is_open and family.type == "counter"
    name = family.name.removesuffix("_total") if is_short else family.name
    text = family.help.translate(_IN_LABELS if is_open else _IN_HELP)
    return f"# HELP {name} {text}\n# TYPE {name} {family.type}\n"


def metrics_of(series: Series, *, with_exemplars: bool = False) -> Iterator[str]:
    """Yield the lines of each set of labels: one of a counter or a gauge, many of a histogram."""
    yield from _value_lines(series)
    yield from _histogram_lines(series, with_exemplars=with_exemplars)


def _written(series: Series, *, is_open: bool) -> bytes:
    # Bytes already: of hundreds of processes a scrape takes megabytes, and they would be there
    # twice as text.
    lines = metrics_of(series, with_exemplars=is_open)
    return "".join((head(series.family, is_open=is_open), *lines)).encode()


def _value_lines(series: Series) -> Iterator[str]:
    name, names = series.family.name, series.family.labels
    if not names:
        return (f"{name} {value!r}\n" for _, value in series.values)
    form = f"{name}{{{_form(names)}}} %r\n"
    return (form % (*_parts(names, values), value) for values, value in series.values)


def _histogram_lines(series: Series, *, with_exemplars: bool) -> Iterator[str]:
    name, names = series.family.name, series.family.labels
    form = _form(names)
    for values, histogram in series.histograms:
        lines = _histogram(name, form % _parts(names, values), histogram)
        if with_exemplars and values in series.exemplars:
            lines = _with_exemplars(lines, series.exemplars[values])
        yield lines


def _with_exemplars(histogram: str, exemplars: Iterable[Exemplar]) -> str:
    """Return the lines of *histogram* with *exemplars*, one in a bucket: the last that is given."""
    lines = histogram.split("\n")
    of_bucket = {bisect_left(BOUNDS_NS, exemplar.ns): exemplar for exemplar in exemplars}
    for bucket, exemplar in of_bucket.items():
        lines[bucket] += (
            f' # {{trace_id="{exemplar.trace_id}",span_id="{exemplar.span_id}"}}'
            f" {exemplar.ns / NS_PER_S!r} {exemplar.at_unix_ns / NS_PER_S:.3f}"
        )
    return "\n".join(lines)


def _histogram(name: str, labels: str, histogram: Histogram) -> str:
    head = f"{name}_bucket{{{labels},".replace("%", "%%")
    counts = upto_bounds(histogram.slots)
    total = counts[-1]
    buckets = _BUCKETS.replace(_HEAD, head) % counts
    return (
        f"{buckets}{name}_count{{{labels}}} {total}\n"
        f"{name}_sum{{{labels}}} {histogram.sum_ns / NS_PER_S!r}\n"
    )


def _form(names: Labels) -> str:
    """Return what labels with these *names* look like, without their `_parts`."""
    # Most lines tell of a process, and nearly all of a scrape about the same few.
    if names[:_SHARED] != PROCESS_LABELS:
        return _pairs(names)
    return ",".join(("%s", _pairs(names[_SHARED:]))) if names[_SHARED:] else "%s"


def _parts(names: Labels, values: Labels) -> tuple[str, ...]:
    if names[:_SHARED] != PROCESS_LABELS:
        return tuple(map(_escaped, values))
    return (_process_pairs(values[:_SHARED]), *map(_escaped, values[_SHARED:]))


@lru_cache(_PROCESSES)
def _process_pairs(values: Labels) -> str:
    # Those of a service have no pid: to Prometheus, a label that is empty is none.
    present = [
        (name, _escaped(value))
        for name, value in zip(PROCESS_LABELS, values, strict=True)
        if value or name != PID
    ]
    return ",".join(f'{name}="{value}"' for name, value in present)


def _pairs(names: Labels) -> str:
    return ",".join([f'{name}="%s"' for name in names])


@lru_cache(_VALUES)
def _escaped(value: str) -> str:
    escaped = value.translate(_IN_LABELS)
    # Not kept twice.
    return value if escaped == value else escaped
