"""Makes docs/pictures/*.png, from programs that it runs: record, report, top and page.

Needs root, as gilscope does, Chromium (`apt-get install chromium`) to draw, and no folder
/srv/demo. What record and diff print, and what the client of docs/convoy.md does, goes to standard
output, for README.md and docs/convoy.md.
"""
# ruff: noqa: INP001, S101, S607, T201 - a script; the assertions are about its own children

import contextlib
import fcntl
import html
import itertools
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import pyte

_ROOT = Path(__file__).resolve().parents[2]
_PICTURES = Path(__file__).parent
# The paths that reports show are those of an application, not those of a checkout.
_FOLDER = Path("/srv/demo")
_WORKLOADS = _ROOT / "tests" / "workloads"
_EXAMPLES = _ROOT / "docs" / "examples"
_PROGRAMS = (
    *(
        _WORKLOADS / name
        for name in ("convoy.py", "convoy_client.py", "handshake.py", "old_pythons.py")
    ),
    *(_EXAMPLES / f"quotes_{name}.py" for name in ("before", "after", "client")),
)
_PYTHON = "/usr/bin/python3"
_GILSCOPE = (sys.executable, "-m", "gilscope")

_REPORT_PX, _PAGE_PX = (1000, 1280), (1280, 800)
_RECORD_LINES, _TOP_LINES = 250, 24
_RECORD_COLUMNS, _TOP_COLUMNS = 130, 90
_PATIENCE_S, _TOP_S = 60.0, 5.0
_BUSY_S, _QUIET_S, _TIMES = 40.0, 15.0, 4

_LINE_PX, _COLUMN_PX, _MARGIN_PX = 20, 8.43, 24
_COLORS = {
    "black": "#14161b",
    "red": "#ff7b72",
    "green": "#7ee787",
    "brown": "#e3b341",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#56d4dd",
    "white": "#d4d7dd",
    "brightblack": "#8b919c",
}
_STYLE = f"""
body {{ margin: 0; background: #14161b; color: #d4d7dd }}
pre {{ margin: 0; padding: {_MARGIN_PX}px; font: 14px/{_LINE_PX}px "DejaVu Sans Mono", monospace }}
"""


def main() -> None:
    """Run the programs, print what was seen, and draw it."""
    _FOLDER.mkdir()
    try:
        for program in _PROGRAMS:
            shutil.copy(program, _FOLDER)
        with _started("convoy.py", "--client") as (pid, _, _):
            _record(pid)
        for name in ("before", "after"):
            _show_quotes(f"quotes_{name}.py", f"{name}.json", with_pictures=name == "before")
        _show_diff()
        _show_page()
    finally:
        shutil.rmtree(_FOLDER)


def _show_quotes(name: str, report: str, *, with_pictures: bool) -> None:
    with _started(name) as (pid, port, _), _started("quotes_client.py", port) as client:
        print(f"client of {name}: {client[2].readline().strip()}")
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "report.html")
            whole = () if with_pictures else ("--full",)
            files = (f"html={page}", f"json={_FOLDER / report}")
            formats = [word for form in ("text", *files) for word in ("--format", form)]
            shown = _record(pid, *formats, *whole)
            if with_pictures:
                shown_lines = [n for n, line in enumerate(shown.display) if line.strip()]
                _draw_screen(shown, shown_lines[-1] + 1, "record.png")
                _draw(page, _REPORT_PX, "report.png")
                top = (*_GILSCOPE, "top", "-p", str(pid))
                screen = _in_terminal(top, _TOP_COLUMNS, _TOP_LINES, awaited="GIL_CONVOY")
                _draw_screen(screen, _TOP_LINES, "top.png")


def _show_diff() -> None:
    """Print how the two recordings compare, in both forms."""
    for form in ("text", "markdown"):
        subprocess.run(
            (*_GILSCOPE, "diff", "before.json", "after.json", "--format", form),
            check=True,
            cwd=_FOLDER,
            env={**os.environ, "PYTHONPATH": str(_ROOT / "agent")},
        )


def _show_page() -> None:
    """Draw the page of both servers, whose clients come and go."""
    before, after = (_started(f"quotes_{name}.py") for name in ("before", "after"))
    with before as (one, one_port, _), after as (other, other_port, _), _served(one, other) as url:
        for _ in range(_TIMES):
            time.sleep(_QUIET_S)
            clients = (_started("quotes_client.py", port) for port in (one_port, other_port))
            with contextlib.ExitStack() as stack:
                for client in clients:
                    stack.enter_context(client)
                time.sleep(_BUSY_S)
                _draw(url, _PAGE_PX, "page.png")


@contextlib.contextmanager
def _served(*pids: int) -> Iterator[str]:
    """Yield the address of a gilscope that traces *pids*."""
    options = [word for pid in pids for word in ("-p", str(pid))]
    with subprocess.Popen(
        (*_GILSCOPE, "serve", "--listen", "127.0.0.1:0", *options),
        env={**os.environ, "PYTHONPATH": str(_ROOT / "agent")},
        stderr=subprocess.PIPE,
        text=True,
    ) as service:
        assert service.stderr is not None
        try:
            lines = iter(service.stderr.readline, "")
            serving = next(line for line in lines if line.startswith("Serving "))
            yield serving.split()[1].removesuffix("metrics.")
        finally:
            service.terminate()


@contextlib.contextmanager
def _started(name: str, *arguments: str) -> Iterator[tuple[int, str, IO[str]]]:
    """Yield a program's pid, its first line, and where the next ones come from; it ends then."""
    with subprocess.Popen(
        (_PYTHON, name, *arguments),
        cwd=_FOLDER,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        assert program.stdout is not None
        try:
            yield program.pid, program.stdout.readline().strip(), program.stdout
        finally:
            program.terminate()


def _record(pid: int, *formats: str) -> pyte.Screen:
    command = (*_GILSCOPE, "record", "-p", str(pid), "-d", "5", *formats)
    screen = _in_terminal(command, _RECORD_COLUMNS, _RECORD_LINES)
    print("\n".join(line.rstrip() for line in screen.display).rstrip(), end="\n\n")
    return screen


def _in_terminal(
    command: Sequence[str], columns: int, lines: int, *, awaited: str = ""
) -> pyte.Screen:
    """Return what a terminal shows when *command* has ended, or some reads after *awaited*."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    is_view = bool(awaited)
    screen = pyte.Screen(columns, lines)
    stream = pyte.ByteStream(screen)
    variables = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(_ROOT / "agent")}
    # As a login shell does: the terminal is the command's own.
    with subprocess.Popen(
        ("setsid", "--ctty", *command),
        cwd=_FOLDER,
        env=variables,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        end_s = time.monotonic() + _PATIENCE_S
        while select.select([ours], [], [], max(0.0, end_s - time.monotonic()))[0]:
            chunk = _read(ours)
            if not chunk:
                break
            stream.feed(chunk)
            if awaited and any(awaited in line for line in screen.display):
                end_s, awaited = time.monotonic() + _TOP_S, ""
        # Whatever it does to the screen at its end is not fed any more.
        if is_view:
            process.terminate()
        code = process.wait()
    assert not awaited, "\n".join(screen.display)
    assert code == 0, "\n".join(screen.display)
    os.close(ours)
    return screen


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # How a pseudo-terminal says that its other end is closed.
        return b""


def _draw_screen(screen: pyte.Screen, lines: int, name: str) -> None:
    columns = max(len(line.rstrip()) for line in screen.display[:lines])
    rows = ("".join(_marked_up(screen.buffer[row], columns)) for row in range(lines))
    head = f'<meta charset="utf-8"><style>{_STYLE}</style>'
    size = (int(columns * _COLUMN_PX) + 2 * _MARGIN_PX, lines * _LINE_PX + 2 * _MARGIN_PX)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_text(head + "<pre>" + "\n".join(rows) + "</pre>")
        _draw(page, size, name)


def _marked_up(row: Mapping[int, pyte.screens.Char], columns: int) -> Iterator[str]:
    cells = [row[column] for column in range(columns)]
    for style, run in itertools.groupby(cells, _style):
        text = html.escape("".join(cell.data for cell in run))
        yield f'<span style="{style}">{text}</span>'


def _style(cell: pyte.screens.Char) -> str:
    color, background = _color(cell.fg, "#d4d7dd"), _color(cell.bg, "#14161b")
    if cell.reverse:
        color, background = background, color
    if cell.bold and color == "#d4d7dd":
        color = "#fff"
    weight = "bold" if cell.bold else "normal"
    return f"color: {color}; background: {background}; font-weight: {weight}"


def _color(name: str, default: str) -> str:
    if re.fullmatch("[0-9a-f]{6}", name):
        return f"#{name}"
    return _COLORS.get(name, default)


def _draw(page: Path | str, size: tuple[int, int], name: str) -> None:
    """Draw the file or the address *page* as a window of *size* pixels shows it."""
    with tempfile.TemporaryDirectory() as profile:
        command = ("chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu")
        window = f"--window-size={size[0]},{size[1]}"
        picture = f"--screenshot={_PICTURES / name}"
        subprocess.run(
            (*command, f"--user-data-dir={profile}", window, picture, str(page)),
            check=True,
            stderr=subprocess.DEVNULL,
        )


if __name__ == "__main__":
    main()
