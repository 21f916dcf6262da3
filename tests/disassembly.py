"""What a disassembler says of a program's instructions."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from gilscope.elf import ElfImage
from gilscope.instruction_length import instruction_length

__all__ = ["instructions", "require_objdump", "wrong_lengths"]

_LINE = re.compile(r"^ *([0-9a-f]+):\t(.*)")


def require_objdump() -> None:
    """Skip the test where objdump is missing."""
    if shutil.which("objdump") is None:
        pytest.skip("objdump is not installed (apt install binutils)")


def instructions(elf: Path, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield address and text of the instructions that objdump sees from *start* up to *end*."""
    span = (f"--start-address={start}", f"--stop-address={end}")
    command = ["objdump", "--disassemble", "--wide", "--no-show-raw-insn", *span, str(elf)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as objdump:
        assert objdump.stdout is not None
        for line in objdump.stdout:
            if found := _LINE.match(line):
                yield int(found[1], 16), found[2].strip()
    assert 0 == objdump.returncode


def wrong_lengths(elf: Path, start: int, end: int, off_by: int = 0) -> tuple[int, list[str]]:
    """Return how many instructions were compared, and those whose length is another one.

    *off_by* is added to the disassembler's lengths.
    """
    image = ElfImage(elf.read_bytes())
    code = bytes(image.read(start, end - start))
    found = list(instructions(elf, start, end))
    wrong = []
    # The last one may go on beyond the end.
    for (address, text), (following, _) in pairwise(found):
        length = instruction_length(code, address - start)
        if length != following - address + off_by:
            wrong.append(f"{address:#x} {text}: {length} bytes, not {following - address}")
    return len(found), wrong
