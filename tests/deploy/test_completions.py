"""What completes words of the command line in a shell."""

import importlib.util
import subprocess
from types import ModuleType

import pytest

from gilscope.cli import COMMANDS
from support.paths import ROOT

_FOLDER = ROOT / "deploy" / "completions"


def _make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("completions", _FOLDER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_MAKE = _make()


def _completed(*words: str) -> list[str]:
    """Return what bash offers for the last one of *words*."""
    script = f"""
        . {_FOLDER / "gilscope"}
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _shtab_gilscope
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    command = ["bash", "-c", script, "bash", "gilscope", *words]
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
