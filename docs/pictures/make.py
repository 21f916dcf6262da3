"""Makes docs/pictures/record.png: a recording of the convoy program as a terminal shows it.

Needs root, as gilscope does, and Chromium (`apt-get install chromium`) to draw. The same report
goes to standard output as plain text, for the README.
"""
# ruff: noqa: INP001, S101 - a script; the assertions are about its own children

import html
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_PICTURE = Path(__file__).with_name("record.png")
_PYTHON = "/usr/bin/python3"
_CONVOY = (_PYTHON, "tests/workloads/convoy.py", "--client")
_RECORD = (sys.executable, "-m", "gilscope", "record", "-d", "5", "-p")

_SHOWN_UNTIL = "How long holders took"
_LINE_PX, _COLUMN_PX, _MARGIN_PX = 20, 8.43, 24
_CLASSES = {"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow"}
_STYLE = f"""
body {{ margin: 0; background: #14161b; color: #d4d7dd }}
pre {{ margin: 0; padding: {_MARGIN_PX}px; font: 14px/{_LINE_PX}px "DejaVu Sans Mono", monospace }}
.bold {{ color: #fff; font-weight: bold }} .red {{ color: #ff7b72; font-weight: bold }}
.dim {{ color: #8b919c }} .green {{ color: #7ee787 }} .yellow {{ color: #e3b341 }}
"""


def main() -> None:
    """Record, print the report, and draw it."""
    with subprocess.Popen(
        _CONVOY, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as convoy:
        assert convoy.stdout is not None
        pid = str(json.loads(convoy.stdout.readline())["pid"])
        report = _in_terminal((*_RECORD, pid))
        convoy.terminate()
    sys.stdout.write(re.sub(r"\033\[\d+m", "", report))
    _draw(f"$ gilscope record -p {pid} -d 5\n{report.partition(_SHOWN_UNTIL)[0].rstrip()}")


def _in_terminal(command: tuple[str, ...]) -> str:
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=_ROOT, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    os.close(ours)
    assert process.returncode == 0, shown.decode()
    return shown.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # How a pseudo-terminal says that its other end is closed.
        return b""


def _draw(text: str) -> None:
    plain = re.sub(r"\033\[\d+m", "", text).splitlines()
    width = int(max(map(len, plain)) * _COLUMN_PX) + 2 * _MARGIN_PX
    height = len(plain) * _LINE_PX + 2 * _MARGIN_PX
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        head = f'<meta charset="utf-8"><style>{_STYLE}</style>'
        page.write_text(f"{head}<pre>{_marked_up(text)}</pre>")
        command = ("chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu")
        size = f"--window-size={width},{height}"
        subprocess.run(
            (*command, f"--user-data-dir={folder}", size, f"--screenshot={_PICTURE}", str(page)),
            check=True,
            stderr=subprocess.DEVNULL,
        )


def _marked_up(text: str) -> str:
    marked = html.escape(text).replace("\033[0m", "</span>")
    return re.sub(r"\033\[(\d+)m", lambda code: f'<span class="{_CLASSES[code[1]]}">', marked)


if __name__ == "__main__":
    main()
