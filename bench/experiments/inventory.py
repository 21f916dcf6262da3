"""The experiments of the sources, a row each, with the figure that came out there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.markdown import table

__all__ = ["ROWS", "Row", "index_table"]


@dataclass(frozen=True, slots=True)
class Row:
    """One experiment or claim of a source."""

    key: str
    what: str
    figure: str
    missing: str = ""
    """Why it is not run again, where it is not."""


_CODE = "code, and no figure"
_FACTS = (
    ("S1", "Tornado's loop runs its callbacks as transactions", _CODE),
    ("S2", "a server that returns the primes up to N", _CODE),
    ("S3", "that server on PyPy-STM, nothing changed", "101 to 104 % CPU, 30 % fewer requests/s"),
    ("S4", "which conflicts", "14.793 s lost, 1258x INEVITABLE, httpserver.py:455"),
    ("S5", "a call outside cannot be rolled back: one of two must wait", "three kinds"),
    (
        "S6",
        "requests/s without that conflict",
        "PyPy 14.4, CPython 2.7 3.2, STM with 1 to 4 threads 9.3, 16.4, 20.4, 24.2",
    ),
    ("S7", "fewer clients: slightly worse; lighter requests: much worse", "no figure"),
    (
        "S8",
        "the next two conflicts",
        "14.153 s (270x INEVITABLE), 13.484 s (130x WRITE_READ)",
    ),
    ("S9", "without etag, much worse", "83.066 s (459x WRITE_WRITE)"),
    ("S10", "the conflict within transaction.py: a shared counter", _CODE),
    ("S11", "Tornado 4.0.2: no scaling, and no conflict that costs time", "an open question"),
    ("S12", "the tool reported no pauses; long ones are expected", "no figure"),
    ("S13", "a game on a shared map with A*", "STM with 4 threads 2 to 6 requests/s, CPython 0.7"),
    ("S14", "its conflicts", "91.655 s (249x WRITE_READ), transaction.py:164"),
    ("S15", "PyPy's nursery without zeroing", "fibonacci 8.1x to 10.6x, gcbench 16.4x to 21.6x"),
    ("S16", "os.write and file.write, os.read and file.read, several sizes", "a picture, lost"),
    ("S17", "donations and goals", "no experiment"),
    ("S18", "/json and /plaintext under `wrk`", "no figure"),
    ("S19", "memory for each client", "50,000 clients in 3 GB"),
    (
        "S20",
        "latency by percentile of three servers at a fixed rate",
        "1.544 ms at 99.9993 %, longest 3.7 to 7.2 ms",
    ),
    ("S21", "titles of Wikipedia from a trie", _CODE),
    ("S22", "which extension modules survive", "a trie crashes, NumPy does not"),
    ("S23", "what could CPython do in the short term?", "a question"),
    (
        "S24",
        "an echo beside threads that compute: the convoy",
        "1 thread: 1 MB/s; 2: much worse; 1 CPU: not explained",
    ),
    ("S25", "the cause: on several CPUs the computing thread reacquires first", "no figure"),
    ("S26", "priorities like a scheduler's feedback queues", "rules and result lost"),
    ("S27", "ccbench, throughput", "4 threads: 93 %, 91 %, bz2 175 %"),
    ("S28", "ccbench, latency", "4 threads: 132, 10 and 0 ms"),
    ("S29", "the same as a patch", "a file, lost"),
    ("S30", "a context manager that takes the time", "UTF-8 3.762 s, Latin-1 3.513 s"),
    ("S31", "lines of a file by encoding", "UTF-8 3.903 s, Latin-1 3.615 s, binary 1.886 s"),
    ("S32", "would priorities of the system help?", "a question, answered no"),
    ("S33", "is there a GIL without threads?", "a question"),
    ("S34", "the scheduler of another patch", "a request"),
    (
        "S35",
        "the talks before: counting in two threads, on two CPUs and on one, with the old GIL",
        "slower in threads, and less so on one CPU; the figures are not in these documents",
    ),
)
_MISSING = {
    "S17": "not an experiment",
    "S19": "two CPUs do not carry 50,000 clients",
    "S34": "the patch is lost",
}
ROWS = tuple(Row(key, what, figure, _MISSING.get(key, "")) for key, what, figure in _FACTS)


def index_table(
    found: Mapping[str, tuple[str, str]], pages: Mapping[str, Sequence[str]], titles: Sequence[str]
) -> str:
    """Return a row for each experiment of the sources.

    *found*: by row, our figure and whether its shape is the source's; *pages*: by row, the pages
    that are about it; *titles*: names of all pages that exist.
    """
    rows = []
    for row in ROWS:
        links = [f"[{name}]({name}.md)" for name in pages.get(row.key, ()) if name in titles]
        ours, shape = found.get(row.key, ("-", "-"))
        if links and row.key not in found:
            ours = "not measured yet"
        where = ", ".join(links) or f"none: {row.missing}"
        rows.append((row.key, row.what, row.figure, ours, shape, where))
    header = ["", "what was done", "figure of the source", "ours", "same shape?", "page"]
    return table(header, rows)
