"""Names that were chosen to do harm where they are shown."""

import shutil
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from faults.bench import Bench
from faults.forms import arguments_of, check_forms, check_page
from faults.plain_words import not_plain
from faults.registry import Failed, Verdict, fault
from faults.targets import SYSTEM_PYTHON, Target
from support.commands.gilscope import eventually

_NAMES = {
    "markup": '</script><evil onload="x()"><img src=x onerror=x()>&amp;<!--',
    "rtl": "\u202egpj.\u2066exe\u2069\u200f",
    "control": "\x1b]0;owned\x07\x1b[31mred\r\x00\x08\x9b2J",
    "long": "a" * 100_000,
    "surrogate": "\udcff\udc80\ud800",
    "label": 'a"} 1\n# HELP evil x\nevil{x="\\',
    "format": "%s%n{0}{self.__class__}${HOME}$(id);a;b 7",
    "empty": "",
    "json": '"],"x":[1e999,{"__proto__":\u2028null}',
    "emoji": "\U0001f600\u0301\u0301\u0301\U0001f468\u200d\U0001f469",
}
_START = """
import threading, types
name = {name!r}
code = work.__code__.replace(co_name=name, co_filename=name)
for number in (2, 3):
    function = types.FunctionType(code, work.__globals__, name, work.__defaults__)
    threading.Thread(target=function, args=(counts, number), daemon=True).start()
"""
_MOST_LABEL = 200
_MOST_PAGE_BYTES = 2_000_000


def _has_plain_forms(bench: Bench, target: Target) -> None:
    folder = bench.folder / "forms"
    folder.mkdir(exist_ok=True)
    line = ("record", "-p", str(target.pid), "-d", "1", "--mode", "full", *arguments_of(folder))
    outcome = bench.run(*line)
    bench.equal(Verdict.AGENT_DIED, 0, outcome.exit_code, f"exit code: {outcome.messages[-200:]}")
    check_forms(folder)


def _has_plain_pages(bench: Bench, target: Target) -> None:
    service = bench.serve("-p", str(target.pid), "--mode", "full")
    bench.sees(service, target)
    target.advances(2000)
    text = service.get("/metrics").text
    bench.lives(service)
    found = not_plain(text)
    bench.expect(Verdict.UNCLEAR_MESSAGE, not found, f"/metrics: {found}")
    bench.expect(Verdict.LEAK, len(text) < _MOST_PAGE_BYTES, f"/metrics has {len(text)} bytes")
    bench.equal(Verdict.UNCLEAR_MESSAGE, [], _long_labels(service.scrape().families), "labels")
    check_page(service.get("/").text, "/")


def _long_labels(families: Sequence[object]) -> list[str]:
    labels = (
        (name, value)
        for family in families
        for sample in family.samples  # type: ignore[attr-defined]  # prometheus_client's Metric
        for name, value in sample.labels.items()
    )
    return sorted({f"{name}: {len(value)}" for name, value in labels if len(value) > _MOST_LABEL})


def _function_name(kind: str) -> None:
    what = f"function and file names: {kind}; every form parses, nothing raw comes through"

    @fault(f"function_name_{kind}", what, half=kind in ("control", "label"))
    def check(bench: Bench) -> None:
        target = bench.target()
        target.do(_START.format(name=_NAMES[kind]))
        _has_plain_forms(bench, target)
        _has_plain_pages(bench, target)


for _kind in _NAMES:
    _function_name(_kind)


@fault(
    "command_lines",
    "command lines: not UTF-8, escapes, line breaks, markup, RTL, rewritten titles: all parse",
    half=True,
)
def _command_lines(bench: Bench) -> None:
    names = (
        b'\xff\xfe\x1b]0;owned\x07\x1b[31ma"}\n1 <evil>\xe2\x80\xae.py',
        b"\xff\xfe.py",
        b"\x1b]0;owned\x07\x1b[31m.py",
        b'a"}\n1 <evil>.py',
        b"\xe2\x80\xae.py",
    )
    for _, name in zip(bench.times(1, len(names)), names, strict=False):
        program = Path(bytes(bench.folder).decode()) / name.decode(errors="surrogateescape")
        program.write_bytes((_PROGRAMS / "contend.py").read_bytes())
        target = bench.target(program=program)
        _has_plain_forms(bench, target)
        _has_plain_pages(bench, target)
        outcome = bench.run("doctor", "-p", str(target.pid))
        bench.says_plainly(outcome.output, "doctor -p")


@fault("rewritten_title", "a process writes terminal control into its title: shown escaped")
def _rewritten_title(bench: Bench) -> None:
    target = bench.target()
    target.do(_TITLE.format(title=b"python3 \x1b]0;PWN\x07\x1b[31m\xe2\x80\xae.py"))
    _has_plain_forms(bench, target)
    _has_plain_pages(bench, target)
    for line in (("doctor", "-p", str(target.pid)), ("doctor", "--all")):
        bench.says_plainly(bench.run(*line).output, " ".join(line))


_TITLE = """
import ctypes, os
stat = open("/proc/self/stat", "rb").read().rpartition(b")")[2].split()
start, end = int(stat[45]), int(stat[46])
title = {title!r}[:end - start - 1]
ctypes.memset(start, 0, end - start)
ctypes.memmove(start, title, len(title))
"""
_PROGRAMS = Path(__file__).resolve().parents[1] / "programs"


@fault("huge_command_line", "a command line of 2 MB: /metrics stays small, the agent goes on")
def _huge_command_line(bench: Bench) -> None:
    arguments = ["x" * 120_000 for _ in range(16)]
    target = bench.target(arguments=arguments)
    _has_plain_pages(bench, target)
    _has_plain_forms(bench, target)


@fault("odd_comm", "process name (comm) with line breaks, brackets, CR: parsed right", half=True)
def _odd_comm(bench: Bench) -> None:
    target = bench.target()
    comms = ("Tgid:\t1\nPid:\t1\n", "\x1b[31m) Z 0 0", "a) R 1 1", "x\n0 (", "a\rTgid:\t1")
    for turn in bench.times(2, len(comms)):
        comm = comms[turn]
        target.do(f"open('/proc/self/comm', 'w').write({comm!r})")
        bench.reports_rightly(target)
        outcome = bench.run("doctor", "-p", str(target.pid))
        bench.says_plainly(outcome.output, "doctor -p")


_ROLES = """
import threading, types
for number in range({roles}):
    name = "role_%d_" % number + "z" * 3000
    code = short.__code__.replace(co_name=name, co_filename=name)
    thread = threading.Thread(target=types.FunctionType(code, globals(), name))
    thread.start()
    thread.join()
"""
_SHORT = "def short():\n    sum(range(20000))\n    open('/dev/null').close()\n"


@fault("many_roles", "3,000 thread names and roles of 3,000 letters under serve: series bounded")
def _many_roles(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid))
    bench.sees(service, target)
    target.do(_SHORT)
    with bench.steady(service, grown_kib=60_000):
        for _ in bench.times(3, 15):
            target.do(_ROLES.format(roles=200))
            text = service.get("/metrics").text
    bench.expect(Verdict.LEAK, len(text) < _MOST_PAGE_BYTES, f"/metrics has {len(text)} bytes")
    bench.equal(Verdict.UNCLEAR_MESSAGE, [], _long_labels(service.scrape().families), "labels")
    name = "gilscope_gil_thread_wait_seconds_total"
    roles = {sample.labels["role"] for sample in service.scrape().samples(name)}
    bench.expect(Verdict.LEAK, len(roles) <= 400, f"{len(roles)} roles")


_TORN = """
import threading, types, ctypes
def torn():
    global stop
    while not stop:
        sum(range(500))
stop = False
def churn():
    number = 0
    while not stop:
        number += 1
        name = "role_%d" % number + "b" * (number % 90)
        code = torn.__code__.replace(co_name=name)
        thread = threading.Thread(target=types.FunctionType(code, dict(globals(), stop=True)))
        thread.start()
        thread.join()
threading.Thread(target=churn, daemon=True).start()
"""


@fault("torn_role_names", "names of threads' functions are freed while they are read: none torn")
def _torn_role_names(bench: Bench) -> None:
    target = bench.target()
    service = bench.serve("-p", str(target.pid))
    target.do(_TORN)
    bench.sees(service, target)
    rounds = 3 if bench.is_half else 15
    for _ in range(rounds):
        target.advances(20_000)
        found = not_plain(service.get("/metrics").text)
        bench.expect(Verdict.WRONG_NUMBER, not found, f"/metrics: {found}")
    target.do("stop = True")


_STRANGE = (
    (b"\x1b]0;owned\x07\x1b[31mRED\r", "escape"),
    ("\u202edni\u2066m".encode(), "direction"),
    (b"a\nerror: forged", "line break"),
)


@fault(
    "refused_evil_names",
    "argv[0] of what is refused holds terminal control: record, serve, doctor say it plain",
    half=True,
)
def _refused_evil_names(bench: Bench) -> None:
    start = "import os, sys; os.execv('/bin/sleep', [os.fsdecode({!r}), '300'])"
    for name, what in _STRANGE:
        with subprocess.Popen([SYSTEM_PYTHON, "-c", start.format(name)]) as sleeper:
            eventually(partial(_sleeps, sleeper.pid))
            pid = str(sleeper.pid)
            for line in (("record", "-p", pid), ("serve", "-p", pid), ("doctor", "-p", pid)):
                outcome = bench.run(*line)
                words = f"{line[0]} of a process with {what} in argv[0]"
                bench.equal(Verdict.UNCLEAR_MESSAGE, 3, outcome.exit_code, words)
                try:
                    bench.says_plainly(outcome.output + outcome.messages, words)
                except Failed as failed:
                    bench.failures.append(failed)
            sleeper.kill()


def _sleeps(pid: int) -> bool:
    return b"sleep" in Path(f"/proc/{pid}/comm").read_bytes()


@fault("odd_paths", "interpreter in a folder with line breaks, CR, U+2028, quotes, 200 characters")
def _odd_paths(bench: Bench) -> None:
    for part in ("a\nb", "a\\012b", "c\rd", "e\u2028f", "g'\"$(id)`h", "i" * 200, " (deleted)"):
        folder = bench.folder / part
        folder.mkdir()
        python = shutil.copy(SYSTEM_PYTHON, folder / "python3.11")
        target = bench.target(str(python))
        try:
            bench.reports_rightly(target)
        except Failed as failed:
            bench.failures.append(Failed(failed.verdict, f"{part[:20]!r}: {failed.seen}"))
