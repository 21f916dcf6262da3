"""The table of exported metrics as a page of the documentation."""

import sys
from collections.abc import Iterable

from gilscope.metrics.client import CLIENT_FAMILIES
from gilscope.metrics.table import FAMILIES, PROCESS_LABELS, Family
from gilscope.model.histogram import BOUNDS_NS
from gilscope.text.units import short_duration

__all__ = ["render"]

_HEAD = """\
# Metrics

This page is made from `agent/gilscope/metrics` by `make docs`.

Times are in seconds.
Series about a traced process carry the labels {process_labels}, written *process* below.
The last two are empty where the process is in no container.

They are those of a {service}: all processes of one name in one container and pod, added up.
`pid` is there with `gilscope serve --per-process` alone, where each process has series of its own.
Where no probes passed their checks there is `gilscope_probe_valid` 0 and no other series.

A histogram `NAME` is stored as `NAME_bucket` with the label `le`, `NAME_sum` and `NAME_count`.
Each of its bounds is four times the one before, from {shortest} to {longest}.
What is longer is in `+Inf` alone.
A quantile of these is no more than a guess between two bounds.

A Prometheus that takes native histograms gets each as one of these too, under the name `NAME`.
Quantiles are then within 5 % of what they are.
It takes them with `--enable-feature=native-histograms`, newer ones with `scrape_native_histograms`.
The dashboards and rules of gilscope work on either form.

## Figures from windows

Auto mode sees holds in windows of full mode only: that is what numbers and times are of.
They are to be divided by the time that windows covered.
Full mode is one window; contention mode has none, and no series with `window="full"`.
Waits are scaled up where they are seen in windows of their own: they are to be divided by all of
the time, as ever.

Holds a second:

    sum without (interpreter) (rate(gilscope_gil_hold_seconds_count[5m]))
      / ignoring (window) rate(gilscope_gil_observed_seconds_total{{window="full"}}[5m])

The share of the time that each role has the GIL:

    rate(gilscope_gil_thread_hold_seconds_total[5m])
      / ignoring (role, window) group_left
        rate(gilscope_gil_observed_seconds_total{{window="full"}}[5m])

The share of the time that the GIL is held, by anybody:

    rate(gilscope_gil_held_seconds_total{{window="all"}}[5m])
      / ignoring (interpreter) group_left
        rate(gilscope_gil_observed_seconds_total{{window="all"}}[5m])

The share of the time that windows cover:

    rate(gilscope_gil_observed_seconds_total{{window="full"}}[5m])
      / ignoring (window) rate(gilscope_gil_observed_seconds_total{{window="all"}}[5m])

Of a service these are the means of its processes.

## All metrics

The values of labels and the reasons for lost events are explained in
{serve_page}.
"""

_OF_CLIENT = """
## Of programs that measure their requests

A program that uses the middleware of {client_page} exports these itself.

"""
_SERVE_PAGE = "gilscope-serve(8)"
_CLIENT = "gilscope-client"
_OF_SERVICE = {
    "sum": "",
    "max": "Of a service it is the highest of its processes.",
    "min": "Of a service it is the lowest of its processes.",
}
_COLUMNS = ("name", "type", "labels", "help", "reads as")


def render(families: Iterable[Family] = FAMILIES, *, linked: bool = True) -> str:
    """Return the page as Markdown, a row for each family in the order of *families*.

    *linked* says whether it is to lie beside the man pages, so that links to them lead somewhere.
    """
    head = _HEAD.format(
        process_labels=_listed(PROCESS_LABELS),
        shortest=short_duration(BOUNDS_NS[0]),
        longest=short_duration(BOUNDS_NS[-1]),
        service="[service](man/gilscope-serve.8.md#services)" if linked else "service",
        serve_page=f"[{_SERVE_PAGE}](man/gilscope-serve.8.md#fields)" if linked else _SERVE_PAGE,
    )
    client = _OF_CLIENT.format(client_page="[gilscope-client](client.md)" if linked else _CLIENT)
    return f"{head}\n{_table(families)}{client}{_table(CLIENT_FAMILIES)}"


def _table(families: Iterable[Family]) -> str:
    rows = [_COLUMNS, ("---",) * len(_COLUMNS), *(_row(family) for family in families)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(family: Family) -> tuple[str, ...]:
    reads_as = " ".join(filter(None, (family.reads_as, _OF_SERVICE[family.together])))
    return (f"`{family.name}`", family.type, _labels(family), family.help, reads_as)


def _labels(family: Family) -> str:
    own = family.labels
    if own[: len(PROCESS_LABELS)] != PROCESS_LABELS:
        return ", ".join(f"`{label}`" for label in own)
    further = own[len(PROCESS_LABELS) :]
    return ", ".join(("*process*", *(f"`{label}`" for label in further)))


def _listed(labels: tuple[str, ...]) -> str:
    *first, last = (f"`{label}`" for label in labels)
    return f"{', '.join(first)} and {last}"


if __name__ == "__main__":
    sys.stdout.write(render())
