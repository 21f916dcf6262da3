"""Names for the callers of a program's functions, held against what the binutils say."""

import subprocess
from pathlib import Path

from gilscope.elf.image import ElfImage
from gilscope.transactions.places import Places
from support.tracing.stmgc import STMGC
from support.tracing.transactions import built

_BIAS = 0x5000_0000


def _symbols(program: Path) -> dict[str, int]:
    lines = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    fields = (line.split() for line in lines.splitlines())
    return {words[2]: int(words[0], 16) for words in fields if len(words) == 3}


def test_callers_are_named_by_their_functions(tmp_path: Path) -> None:
    """
    Two places of one function are one reason; what is in no file is said to be so.
    """
    program = built(tmp_path, "stmgc", STMGC["E16-pie"])
    symbols = _symbols(program)
    places = Places(ElfImage(program.read_bytes()), _BIAS, str(program))
    write, select = (_BIAS + symbols[name] for name in ("call_write", "call_select"))

    assert {"at call_write": 3, "at call_select": 4, "at code that is in no file": 5} == (
        places.named({write + 5: 1, write + 9: 2, select + 5: 4, 1 << 46: 5})
    )


def test_callers_without_symbols_are_named_by_their_place(tmp_path: Path) -> None:
    """
    The file and the address in it, which tools for that very file can look up.
    """
    program = built(tmp_path, "stmgc", STMGC["E16-pie"])
    place = _symbols(program)["call_write"] + 5
    subprocess.run(["strip", program], check=True)
    places = Places(ElfImage(program.read_bytes()), _BIAS, str(program))

    assert {f"at stmgc+{place:#x}": 1} == places.named({_BIAS + place: 1})
