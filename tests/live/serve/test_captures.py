"""Captures of waits that pass a limit."""

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from accuracy.truth import started
from support.commands.gilscope import eventually, gilscope
from support.commands.json_reports import assert_dump_fits_schema, frames_of
from support.commands.serve import Service, serving
from support.held_in_c import SCRIPT, holder_started
from support.interpreters.known import TIMED_MINORS, Interpreter

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"
_ABOVE = ("--capture-above", "300ms", "--mode", "contention")
_ESCAPE = "\x1b"


def _captured(folder: Path) -> dict[str, Any]:
    """Return the only capture in *folder*, as soon as there is one."""
    (file,) = eventually(lambda: list(folder.glob("gilscope-*.json")))
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    report: dict[str, Any] = json.loads(file.read_text())
    assert_dump_fits_schema(report)
    return report


def _counts(service: Service) -> dict[str, float]:
    samples = service.scrape().samples("gilscope_captures_total")
    return {sample.labels["outcome"]: sample.value for sample in samples}


@pytest.mark.parametrize("interpreter", TIMED_MINORS)
def test_a_long_hold_is_captured_while_it_lasts(interpreter: Interpreter, tmp_path: Path) -> None:
    """
    The file is there before the hold is over; it names the holder, its line and who waits.
    """
    with (
        holder_started(python=interpreter.argv) as holder,
        serving("-p", str(holder.pid), *_ABOVE, "--capture-dir", str(tmp_path)) as service,
    ):
        holder.holds()
        report = _captured(tmp_path)
        assert holder.process.poll() is None
        page = service.get("/").text
        text = service.get("/capture?number=1").text
        as_json = service.get("/capture?number=1&form=json").text
        counts = eventually(lambda: _written(_counts(service)))
        holder.go_on()
    (gil,) = report["gils"]
    (thread,) = [each for each in report["threads"] if each["tid"] == gil["holder"]]
    innermost = frames_of(report, thread["stacks"][0]["stack"])[0]

    assert holder.pid == gil["holder"]
    assert "read" == thread["call"]
    assert "hold" == innermost["function"]
    assert _line_of("ctypes.PyDLL(None).read") == innermost["line"]
    assert 0.3 <= report["trigger"]["waited_s"] < 60
    assert report["trigger"]["tid"] in gil["waiting"]
    assert 0.25 < gil["held_s"] <= report["trigger"]["waited_s"]
    assert report["pairs"][0]["wait_s"] > 0
    assert report["verdict"][0] in page.replace("&gt;", ">").replace("&lt;", "<")
    assert f"Thread {holder.pid} MainThread" in text
    assert report == json.loads(as_json)
    assert {"written": 1, "suppressed": 0, "failed": 0} == counts


def _written(counts: dict[str, float]) -> dict[str, float]:
    return counts if counts.get("written") else {}


def _line_of(text: str) -> int:
    lines = SCRIPT.read_text().splitlines()
    (number,) = [at for at, line in enumerate(lines, 1) if text in line]
    return number


def test_a_deadlock_is_captured() -> None:
    """
    As one, on standard error as a line of JSON.
    """
    with (
        started([_PYTHON], "abba.py") as workload,
        serving(
            *("-p", str(workload.pid), *_ABOVE, "--log.format", "json", "--log.level", "error")
        ) as service,
    ):
        workload.command("go")
        line = json.loads(service.command.says('"capture"'))
        os.kill(workload.pid, 9)
    report = line["capture"]

    assert_dump_fits_schema(report)
    # Captures are asked for by an option of their own, whatever the level leaves out.
    assert ("error", f"capture of pid {workload.pid}") == (line["level"], line["message"])
    assert report["verdict"][0].startswith(f"deadlock: thread {workload.ready['main']} (MainThread")
    assert [workload.ready["main"], workload.ready["keeper"]] == [
        step["tid"] for step in report["deadlocks"][0]
    ]


def test_one_a_minute(tmp_path: Path) -> None:
    """
    A second hold within the minute is counted, and nothing is written.
    """
    script = tmp_path / "twice.py"
    source = SCRIPT.read_text()
    script.write_text(
        source.replace("while os.read(0, 100):\n    pass\n", "")
        + 'print("holding", flush=True)\nhold()\nprint("released", flush=True)\n'
    )
    folder = tmp_path / "captures"
    with (
        holder_started(script) as holder,
        serving("-p", str(holder.pid), *_ABOVE, "--capture-dir", str(folder)) as service,
    ):
        holder.holds()
        _captured(folder)
        eventually(lambda: _written(_counts(service)))
        holder.go_on()
        holder.holds()
        counts = eventually(lambda: _suppressed(_counts(service)))
        holder.go_on()

    assert (1, 0) == (counts["written"], counts["failed"])
    assert 1 == len(list(folder.iterdir()))


def _suppressed(counts: dict[str, float]) -> dict[str, float]:
    return counts if counts["suppressed"] else {}


def _failed(counts: dict[str, float]) -> dict[str, float]:
    return counts if counts["failed"] else {}


def test_a_folder_that_has_gone(tmp_path: Path) -> None:
    """
    It is counted and said; the page has the capture all the same, and tracing goes on.
    """
    folder = tmp_path / "captures"
    with (
        holder_started() as holder,
        serving("-p", str(holder.pid), *_ABOVE, "--capture-dir", str(folder)) as service,
    ):
        folder.rmdir()
        holder.holds()
        counts = eventually(lambda: _failed(_counts(service)))
        said = service.command.says("could not capture")
        text = service.get("/capture?number=1").text
        health = service.get("/healthz")
        holder.go_on()

    assert {"written": 0, "suppressed": 0, "failed": 1} == counts
    assert f"ERROR: could not capture process {holder.pid}: {folder}" in said
    assert "No such file or directory" in said
    assert "holds the GIL" in text
    assert 200 == health.status


def test_a_full_disk(tmp_path: Path) -> None:
    """
    Likewise; no half of a file stays.
    """
    folder = tmp_path / "full"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", str(folder)], check=True)
    try:
        (folder / "filled").write_bytes(b"x" * 8192)
        with (
            holder_started() as holder,
            serving("-p", str(holder.pid), *_ABOVE, "--capture-dir", str(folder)) as service,
        ):
            holder.holds()
            counts = eventually(lambda: _failed(_counts(service)))
            said = service.command.says("could not capture")
            holder.go_on()
        left = [each.name for each in folder.iterdir()]
    finally:
        subprocess.run(["umount", str(folder)], check=True)

    assert {"written": 0, "suppressed": 0, "failed": 1} == counts
    assert "No space left on device" in said
    assert ["filled"] == left


def test_hostile_names(tmp_path: Path) -> None:
    """
    Whatever a program calls itself, no control character reaches the log, the page or the text.
    """
    script = tmp_path / f"{_ESCAPE}[2J<b>.py"
    script.write_text(SCRIPT.read_text())
    with holder_started(script) as holder, serving("-p", str(holder.pid), *_ABOVE) as service:
        holder.holds()
        said = service.command.says("capture of pid")
        page = service.get("/").text
        text = service.get("/capture?number=1").text
        holder.go_on()

    assert [] == [each for each in (said, page, text) if _ESCAPE in each]
    assert "[2J<b>.py" not in page
    assert_dump_fits_schema(json.loads(said.partition(": ")[2].partition(": ")[2]))


def test_off_unless_it_is_wanted() -> None:
    """
    Without the option nothing is captured, and nothing is counted.
    """
    with (
        holder_started() as holder,
        serving("-p", str(holder.pid), "--mode", "contention") as service,
    ):
        holder.holds()
        eventually(lambda: _longest(service) > 0.5)
        counts, missing = _counts(service), service.get("/capture?number=1")
        holder.go_on()

    assert ({}, 404) == (counts, missing.status)


def _longest(service: Service) -> float:
    return service.scrape().total("gilscope_gil_longest_wait_seconds")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--all", "--capture-dir", "/tmp"), "--capture-dir needs --capture-above"),
        (("--all", "--capture-above", "1s", "--capture-files", "0"), "must be 1 or more"),
        (("--stm-log", "/tmp/x.stm", "--capture-above", "1s"), "--capture-above needs processes"),
        (("--all", "--capture-above", "1ms"), "from 0.01 to 3600 s"),
        (("--all", "--capture-above", "1s", "--capture-dir", "/dev/null"), "as a folder"),
    ],
    ids=["dir alone", "no files", "no processes", "too short", "no folder"],
)
def test_what_makes_no_sense(arguments: tuple[str, ...], words: str) -> None:
    """
    Is said at once.
    """
    outcome = gilscope("serve", "--listen", "127.0.0.1:0", *arguments)

    assert 2 == outcome.exit_code
    assert words in outcome.messages
