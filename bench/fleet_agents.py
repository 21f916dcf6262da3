"""Serves what one agent exports as a fleet of agents, each at a path of its own.

    python bench/fleet_agents.py FILE

FILE holds an `Exposition` as JSON. Prints the port, and ends at the end of stdin.
"""

import json
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

__all__ = ["Exposition", "Line", "continued", "dumped", "rendered", "series_of"]

_PATH = re.compile(r"/agent/\d+/metrics")
_COUNTED = ("counter", "histogram")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an exposition; a comment has neither value nor growth."""

    text: str
    """A comment, or the series."""
    value: float | None = None
    grows_per_s: float = 0.0
    is_whole: bool = False
    """Whether the values are whole numbers."""


@dataclass(frozen=True, slots=True)
class Exposition:
    """What an agent exported, and how fast it grew."""

    lines: tuple[Line, ...]


def continued(first: str, last: str, apart_s: float) -> Exposition:
    """Return *last*, growing as it has since *first*, scraped *apart_s* seconds before.

    Gauges keep their last value, and so does what was not there before or ran back.
    Raises ValueError where *apart_s* is no time.
    """
    if apart_s <= 0:
        raise ValueError(f"scrapes {apart_s} s apart: no growth can be told of them")
    before = {series: float(value) for series, value in _samples(first)}
    lines: list[Line] = []
    kind = ""
    for text in last.splitlines():
        if text.startswith("#"):
            kind = text.split()[3] if text.startswith("# TYPE") else kind
            lines.append(Line(text))
            continue
        series, _, value = text.rpartition(" ")
        now, was = float(value), before.get(series)
        grown = now - was if was is not None and kind in _COUNTED else 0.0
        is_whole = now.is_integer() and (was is None or was.is_integer())
        lines.append(Line(series, now, max(0.0, grown) / apart_s, is_whole))
    return Exposition(tuple(lines))


def rendered(exposition: Exposition, after_s: float) -> str:
    """Return the text that it has grown to so many seconds after its last scrape."""
    return "".join(f"{_line(line, after_s)}\n" for line in exposition.lines)


def series_of(page: str) -> list[tuple[str, Mapping[str, str]]]:
    """Return the series of *page*, by the name of the sample and its labels as they are written."""
    return [
        (series.partition("{")[0], dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', series)))
        for series, _ in _samples(page)
    ]


def _samples(page: str) -> Iterator[tuple[str, str]]:
    for line in page.splitlines():
        if line and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            yield series, value


def _line(line: Line, after_s: float) -> str:
    if line.value is None:
        return line.text
    value = line.value + line.grows_per_s * after_s
    return f"{line.text} {int(value) if line.is_whole else round(value, 9)!r}"


class _Fleet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 2048

    def __init__(self, exposition: Exposition) -> None:
        super().__init__(("127.0.0.1", 0), _Agent)
        self._exposition = exposition
        self._began_s = time.monotonic()
        self._lock = threading.Lock()
        self._page = (-1, "")

    def page(self) -> str:
        """Return the page of this second."""
        second = int(time.monotonic() - self._began_s)
        with self._lock:
            if self._page[0] != second:
                self._page = second, rendered(self._exposition, second)
            return self._page[1]


class _Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer as the agent of the path: all of them tell the same."""
        if _PATH.fullmatch(self.path) is None or not isinstance(self.server, _Fleet):
            self.send_error(404)
            return
        content = self.server.page().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
        """Say nothing."""


def dumped(exposition: Exposition) -> str:
    """Return it as JSON."""
    return json.dumps([asdict(line) for line in exposition.lines])


def main() -> None:
    """Serve until stdin ends."""
    lines = json.loads(Path(sys.argv[1]).read_text())
    with _Fleet(Exposition(tuple(Line(**line) for line in lines))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_port, flush=True)
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    main()
