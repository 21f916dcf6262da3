"""Tests of the two forms in which doctor reports."""

import json
from dataclasses import replace

import pytest

from gilscope.model.diagnosis import (
    Check,
    Diagnosis,
    ProcessDiagnosis,
    PythonLine,
    Status,
    TrapCost,
)
from gilscope.reports.doctor import json as doctor_json
from gilscope.reports.doctor import text as doctor_text

_KERNEL = Check("kernel", Status.OK, "Linux 6.12")
_ALONE = Check("pid_namespace", Status.WARNING, "nobody else", "share it")
_NO_CAP = Check("capabilities", Status.MISSING, "CAP_BPF is missing", "grant CAP_BPF", 5)
_NO_BPF = Check("bpf", Status.MISSING, "refused: CAP_BPF is missing", "grant CAP_BPF", 5)
_PROBES = Check("probes", Status.UNKNOWN, "not compiled: see bpf")
_HOLDS = Check("holds", Status.WARNING, "full and auto mode, but rarer")
_TRAP_COST = Check("trap_cost", Status.OK, "0.5 us")
_PYTHON = Check("interpreter", Status.OK, "CPython 3.11.2")

_PROCESS = ProcessDiagnosis(
    pid=47,
    name="app.py",
    checks=(_PYTHON,),
    python="3.11.2",
    build_id="abab",
    path="/usr/bin/python3.11",
    opened_as="/proc/47/root/usr/bin/python3.11",
    method="sites",
    sites={"waits": 1, "yields": 2, "acquires": 1, "releases": 3},
    gils=(0, 3),
    threads=5,
)
_LOCKS_ALONE = "Process 47 has no GIL to trace, but its locks"
_WITHOUT_GIL = (
    Check("interpreter", Status.MISSING, "none", exit_code=7),
    Check("locks", Status.OK, "seen with --locks"),
)


def test_a_machine_that_works() -> None:
    """
    Checks are aligned and the last line is the verdict.
    """
    assert (
        "This machine\n"
        "  ok      kernel         Linux 6.12\n"
        "  warning pid namespace  nobody else\n"
        "                         -> share it\n"
        "\n"
        "gilscope works here.\n"
    ) == doctor_text.render(Diagnosis((_KERNEL, _ALONE)))


def test_one_cause_has_one_remedy() -> None:
    """
    A remedy is told once, at the first check that it fixes; the verdict names what is missing.
    """
    assert (
        "This machine\n"
        "  missing capabilities  CAP_BPF is missing\n"
        "                        -> grant CAP_BPF\n"
        "  missing bpf           refused: CAP_BPF is missing\n"
        "  unknown probes        not compiled: see bpf\n"
        "\n"
        "gilscope does not work here: capabilities, bpf.\n"
    ) == doctor_text.render(Diagnosis((_NO_CAP, _NO_BPF, _PROBES)))


@pytest.mark.parametrize(
    ("checks", "process", "verdict"),
    [
        ((_KERNEL,), _PROCESS, "Process 47 can be traced: gilscope record -p 47"),
        ((_NO_CAP,), _PROCESS, "Process 47 could be traced."),
        (
            (_KERNEL,),
            replace(_PROCESS, checks=(Check("interpreter", Status.MISSING, "none"),)),
            "Process 47 cannot be traced: interpreter.",
        ),
        (
            (_KERNEL,),
            replace(_PROCESS, checks=_WITHOUT_GIL),
            f"{_LOCKS_ALONE} can be traced: gilscope record --locks -p 47",
        ),
        (
            (_NO_CAP,),
            replace(_PROCESS, checks=_WITHOUT_GIL),
            f"{_LOCKS_ALONE} could be traced.",
        ),
        # It has a GIL, whose state was not to be read.
        (
            (_KERNEL,),
            replace(_PROCESS, checks=(Check("gils", Status.MISSING, "?", "", 4), _WITHOUT_GIL[1])),
            "Process 47 cannot be traced: gils.",
        ),
    ],
)
def test_the_verdict_on_a_process(
    checks: tuple[Check, ...], process: ProcessDiagnosis, verdict: str
) -> None:
    """
    The command that traces it is offered where it would work.
    """
    report = doctor_text.render(Diagnosis(checks, process))

    assert verdict == report.splitlines()[-1]


def test_all_pythons() -> None:
    """
    One line each: the method, or why there is none.
    """
    lines = (
        PythonLine(47, "app.py", "3.11.2", "sites"),
        PythonLine(4711, "old.py", None, None, "this is CPython 2", "none"),
    )

    report = doctor_text.render(Diagnosis((_KERNEL,), None, lines, unreadable=2))

    assert [
        "Python processes",
        "   pid  process  python  gil",
        "    47  app.py   3.11.2  sites",
        "  4711  old.py   -       this is CPython 2",
        "  2 more processes may not be inspected",
    ] == report.splitlines()[3:8]


def test_no_pythons() -> None:
    """
    An empty list is told of.
    """
    report = doctor_text.render(Diagnosis((_KERNEL,), None, ()))

    assert ["Python processes", "  none but this one"] == report.splitlines()[3:5]


def test_long_texts_stay_below_the_width() -> None:
    """
    Words are wrapped under 100 columns and keep their column; a long path stays whole.
    """
    path = "/" + "x" * 120
    words = "word " * 60
    report = doctor_text.render(
        Diagnosis((Check("kernel", Status.OK, words), Check("bcc", Status.MISSING, "no", path)))
    )

    assert [f"            {' ' * 6}-> {path}"] == [
        line for line in report.splitlines() if len(line) >= 100
    ]
    assert {18} == {line.index("word") for line in report.splitlines() if "word" in line}


def test_colours_add_nothing_else() -> None:
    """
    Without its escape sequences the coloured report is the plain one.
    """
    diagnosis = Diagnosis((_KERNEL, _ALONE, _NO_CAP, _PROBES), _PROCESS)

    coloured = doctor_text.render(diagnosis, colour=True)

    for sequence in ("\033[0m", "\033[1m", "\033[2m", "\033[31m", "\033[32m", "\033[33m"):
        assert sequence in coloured
        coloured = coloured.replace(sequence, "")
    assert (
        doctor_text.render(diagnosis)
        == "\n".join(line.rstrip() for line in coloured.splitlines()) + "\n"
    )


def test_json_of_a_machine() -> None:
    """
    What was not asked for is null; every check has its four fields.
    """
    assert {
        "version": 1,
        "ok": False,
        "exit_code": 5,
        "checks": [
            {"name": "kernel", "status": "ok", "found": "Linux 6.12", "remedy": ""},
            {
                "name": "capabilities",
                "status": "missing",
                "found": "CAP_BPF is missing",
                "remedy": "grant CAP_BPF",
            },
        ],
        "features": [],
        "trap_cost": None,
        "process": None,
        "processes": None,
    } == json.loads(doctor_json.render(Diagnosis((_KERNEL, _NO_CAP))))


def test_features_are_set_apart() -> None:
    """
    They stand below the checks, under a heading of their own, and fail nothing.
    """
    diagnosis = Diagnosis((_KERNEL,), features=(_HOLDS, _TRAP_COST))

    assert (
        "This machine\n"
        "  ok      kernel  Linux 6.12\n"
        "\n"
        "What works on this kernel, and how\n"
        "  warning holds      full and auto mode, but rarer\n"
        "  ok      trap cost  0.5 us\n"
        "\n"
        "gilscope works here.\n"
    ) == doctor_text.render(diagnosis)
    assert 0 == replace(diagnosis, features=(replace(_HOLDS, status=Status.MISSING),)).exit_code


def test_json_of_features() -> None:
    """
    Each is written like a check, and what a trap costs in seconds.
    """
    cost = TrapCost(full_ns=500, contention_ns=750, stepped_ns=9_000, is_measured=True)
    report = json.loads(
        doctor_json.render(Diagnosis((_KERNEL,), features=(_HOLDS,), trap_cost=cost))
    )

    assert [
        {
            "name": "holds",
            "status": "warning",
            "found": "full and auto mode, but rarer",
            "remedy": "",
        }
    ] == report["features"]
    assert {"full_s": 5e-7, "contention_s": 7.5e-7, "stepped_s": 9e-6, "measured": True} == (
        report["trap_cost"]
    )


def test_json_of_a_process() -> None:
    """
    All facts are there, and the process' own checks.
    """
    report = json.loads(doctor_json.render(Diagnosis((_KERNEL,), _PROCESS)))

    assert report["ok"] is True
    assert {
        "pid": 47,
        "name": "app.py",
        "python": "3.11.2",
        "build_id": "abab",
        "path": "/usr/bin/python3.11",
        "opened_as": "/proc/47/root/usr/bin/python3.11",
        "method": "sites",
        "sites": {"waits": 1, "yields": 2, "acquires": 1, "releases": 3},
        "gils": [0, 3],
        "threads": 5,
        "checks": [
            {"name": "interpreter", "status": "ok", "found": "CPython 3.11.2", "remedy": ""}
        ],
    } == report["process"]


def test_json_of_all_pythons() -> None:
    """
    A process that cannot be traced carries its reason and remedy.
    """
    lines = (PythonLine(47, "old.py", None, None, "this is CPython 2", "none"),)

    report = json.loads(doctor_json.render(Diagnosis((_KERNEL,), None, lines)))

    assert [
        {
            "pid": 47,
            "name": "old.py",
            "python": None,
            "method": None,
            "reason": "this is CPython 2",
            "remedy": "none",
        }
    ] == report["processes"]


def test_nothing_that_a_process_says_of_itself_is_obeyed() -> None:
    """
    Neither in the table of processes nor in a check, and in no remedy.
    """
    evil = "\033]0;PWN\a\033[31mred\r\u202e"
    check = Check("process", Status.MISSING, evil, evil)
    line = PythonLine(47, evil, None, None, evil)
    found = Diagnosis(
        (_KERNEL, check), process=replace(_PROCESS, checks=(check,)), processes=(line,)
    )

    shown = doctor_text.render(found).split("\n")

    assert [] == [each for each in shown if not each.isprintable()]
    assert 5 == sum("]0;PWN[31mred" in each for each in shown)
