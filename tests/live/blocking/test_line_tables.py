"""Decodes the line tables of every interpreter, against the interpreter's own decoder."""

import json
import subprocess
from functools import cache

import pytest

from gilscope.elf.image import ElfImage
from gilscope.runtimes.cpython.code.line_table import LineTableForm, line_at
from gilscope.runtimes.cpython.detect import identify
from gilscope.runtimes.cpython.layout import layout_for
from support.interpreters.known import INTERPRETERS, Interpreter
from support.paths import WORKLOADS

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_WORKLOAD = WORKLOADS / "code_lines.py"
_UNIT = 2


# Builds of one version have most tables in common.
@cache
def _decoded(
    form: LineTableForm, table: str, first_line: int, instructions: int
) -> tuple[int | None, ...]:
    """Return the line of each instruction."""
    content = bytes.fromhex(table)
    return tuple(
        line_at(form, content, first_line, number * _UNIT) for number in range(instructions)
    )


@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_every_instruction_has_the_line_that_python_gives_it(interpreter: Interpreter) -> None:
    """
    In a large part of the standard library no instruction is given another line, or one too many.
    """
    form = layout_for(identify(ElfImage(interpreter.elf.read_bytes()))).line_table_form
    done = subprocess.run(
        interpreter.command(str(_WORKLOAD)),
        env=interpreter.environment(),
        check=True,
        capture_output=True,
        timeout=120,
    )
    codes = json.loads(done.stdout)
    wrong = [
        (code["name"], code["first_line"])
        for code in codes
        if tuple(code["lines"])
        != _decoded(form, code["table"], code["first_line"], len(code["lines"]))
    ]

    assert [] == wrong
    has_none = any(None in code["lines"] for code in codes)
    assert has_none == (form is not LineTableForm.INCREMENTS)
