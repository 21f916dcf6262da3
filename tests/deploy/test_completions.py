"""What completes words of the command line in a shell."""

import subprocess

import pytest

from gilscope.cli import COMMANDS
from support.paths import ROOT
from support.scripts import script

_FOLDER = ROOT / "deploy" / "completions"

_MAKE = script(_FOLDER / "make.py")


def _completed(*words: str) -> list[str]:
    """Return what bash offers for the last one of *words*."""
    lines = f"""
        . {_FOLDER / "gilscope"}
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _shtab_gilscope
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    command = ["bash", "-c", lines, "bash", "gilscope", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "" == done.stderr
    return sorted(done.stdout.split())


@pytest.mark.parametrize("shell", _MAKE.FILES)
def test_script_is_current(shell: str) -> None:
    """
    It is what `make docs` would write now.
    """
    assert _MAKE.completions(shell) == (_FOLDER / _MAKE.FILES[shell]).read_text()


def test_bash_completes_commands_options_and_values() -> None:
    """
    As the parser knows them.
    """
    assert set(COMMANDS) <= set(_completed(""))
    assert ["snapshot"] == _completed("sn")
    assert ["--mode"] == _completed("record", "--mo")
    assert ["contention", "full"] == _completed("record", "--mode", "")
    assert ["schema"] == _completed("export", "sch")
