"""What a C compiler makes of a header of the probes."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from support.paths import ROOT

__all__ = ["CMember", "compiled_numbers", "compiled_struct"]

_COMPILER = shutil.which("cc") or "cc"
_PROGRAM = """\
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#include "HEADER"
int main(void)
{
PRINTED
}
"""


class CMember(NamedTuple):
    """Where a member is in memory."""

    offset: int
    size: int


def compiled_numbers(header: str, folder: Path) -> dict[str, int]:
    """Return every macro and enumerator of probes/*header* with the number that it has in C."""
    text = (ROOT / "probes" / header).read_text()
    names = re.findall(r"(?m)^#define (\w+)", text) + re.findall(r"(?m)^    (\w+) = ", text)
    return _printed(header, folder, {name: name for name in names})


def compiled_struct(
    header: str, name: str, members: Sequence[str], folder: Path
) -> tuple[int, dict[str, CMember]]:
    """Return the size of struct *name* in probes/*header*, and where its *members* are."""
    asked = {"": f"sizeof(struct {name})"}
    for member in members:
        asked[f"offset {member}"] = f"offsetof(struct {name}, {member})"
        asked[f"size {member}"] = f"sizeof(((struct {name} *)0)->{member})"
    found = _printed(header, folder, asked)
    return found[""], {
        member: CMember(found[f"offset {member}"], found[f"size {member}"]) for member in members
    }


def _printed(header: str, folder: Path, asked: Mapping[str, str]) -> dict[str, int]:
    """Return the value of each expression of C."""
    lines = (f'    printf("%lld\\n", (long long)({what}));' for what in asked.values())
    source, program = folder / "asked.c", folder / "asked"
    source.write_text(_PROGRAM.replace("HEADER", header).replace("PRINTED", "\n".join(lines)))
    subprocess.run(
        [_COMPILER, "-Wall", "-Werror", f"-I{ROOT / 'probes'}", source, "-o", program], check=True
    )
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return dict(zip(asked, map(int, printed.split()), strict=True))
