"""The unit for systemd, as its own tools judge it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gilscope.cli import build_parser
from support.deploy.manifests import DEPLOY
from support.docs.pages import ROOT

_UNIT = DEPLOY / "systemd" / "gilscope.service"
_MOST_EXPOSED = 30
"""Tenths of what `systemd-analyze security` calls exposure; 100 is a service without any limits."""


def _analyzed(*words: str) -> tuple[int, str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is in Debian's package systemd, which is not installed")
    command = ["systemd-analyze", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def _changed(folder: Path, old: str, new: str) -> Path:
    """Return a copy of the unit that begins a program that exists, and has *new* for *old*."""
    text = _UNIT.read_text().replace("/opt/gilscope/bin/gilscope", "/bin/true")
    assert old in text
    path = folder / _UNIT.name
    path.write_text(text.replace(old, new))
    return path


def test_unit_is_understood(tmp_path: Path) -> None:
    """
    Each line is one that systemd knows.
    """
    assert (0, "") == _analyzed("verify", "--man=no", str(_changed(tmp_path, "", "")))


def test_unknown_line_is_found(tmp_path: Path) -> None:
    """
    A name that systemd does not know is told.
    """
    unit = _changed(tmp_path, "PrivateTmp=", "PrivateTemp=")

    assert "PrivateTemp" in _analyzed("verify", "--man=no", str(unit))[1]


def _security(unit: Path) -> tuple[int, str]:
    return _analyzed("security", "--offline=true", f"--threshold={_MOST_EXPOSED}", str(unit))


def test_unit_is_hardly_exposed() -> None:
    """
    Below 3.0 of 10, although it runs as root.
    """
    code, said = _security(_UNIT)

    assert 0 == code, said


def test_one_right_more_is_found(tmp_path: Path) -> None:
    """
    Without the bounds on capabilities the score is above the threshold.
    """
    unit = _changed(tmp_path, "CapabilityBoundingSet=", "#")

    assert 1 == _security(unit)[0]


def test_page_has_the_score() -> None:
    """
    It names the threshold.
    """
    page = (ROOT / "docs" / "systemd.md").read_text()

    assert f"gives it less than {_MOST_EXPOSED / 10} of 10" in page


def test_unit_has_the_least_rights() -> None:
    """
    The capabilities of the DaemonSet, and its arguments on the loopback.
    """
    lines = dict(line.split("=", 1) for line in _UNIT.read_text().splitlines() if "=" in line[1:])
    program, *arguments = lines["ExecStart"].split()

    assert (
        "CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH" == lines["CapabilityBoundingSet"]
    )
    assert "/opt/gilscope/bin/gilscope" == program
    parsed = build_parser().parse_args(arguments)
    assert ("127.0.0.1", 9845) == parsed.listen
    assert "gilscope" == lines["StateDirectory"]
    assert "${STATE_DIRECTORY}/counters" == parsed.keep_counters
