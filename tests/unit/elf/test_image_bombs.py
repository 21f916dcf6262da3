"""Files that were made to be costly: each reader is done soon, and with little memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.arch.x86_64.architecture import X86_64
from gilscope.elf.budget import MOST_KEPT_BYTES, MOST_STEPS, ElfBudget
from gilscope.elf.eh_frame import FrameTable
from gilscope.elf.image import ElfError, ElfImage
from support.elf.bombs import BOMBS, Part, elf_file

_MOST_CPU_S = 5
_MOST_KIB = 64 << 10

# Whoever needs more is killed: by the kernel, or by the MemoryError of an own limit.
_READER = f"""
import json, resource, sys
from pathlib import Path
from gilscope.elf.image import ElfError, ElfImage
from gilscope.errors import GilscopeError
from gilscope.runtimes.cpython.detect import identify
from gilscope.runtimes.cpython.sites.resolve import resolve_sites
from gilscope.runtimes.stm.sites import find_sites

content = Path(sys.argv[1]).read_bytes()
kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for limit, value in ((resource.RLIMIT_AS, 1 << 30), (resource.RLIMIT_CPU, 6 * {_MOST_CPU_S})):
    resource.setrlimit(limit, (value, value))
outcomes = []
for reader in (
    identify,
    resolve_sites,
    lambda image: find_sites(image, lambda vaddr: None),
    lambda image: (image.needed, image.functions),
    lambda image: image.build_id,
):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    try:
        reader(ElfImage(content))
        outcome = "found"
    except (ElfError, GilscopeError) as error:
        outcome = type(error).__name__
    spent = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
    outcomes.append((outcome, spent))
print(json.dumps([outcomes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - kib]))
"""


@pytest.mark.parametrize("name", BOMBS)
def test_a_costly_file_is_given_up_soon(name: str, tmp_path: Path) -> None:
    """
    No reader needs more than five seconds of a processor, or than 64 MB besides the file.
    """
    bomb = tmp_path / "bomb"
    bomb.write_bytes(BOMBS[name]())
    child = subprocess.run(
        [sys.executable, "-c", _READER, str(bomb)], check=False, capture_output=True, text=True
    )

    assert 0 == child.returncode, child.stderr[-2000:]
    outcomes, kib = json.loads(child.stdout)
    assert {"ElfError", "GilCodeNotFound"} & {outcome for outcome, _ in outcomes}
    assert max(spent for _, spent in outcomes) <= _MOST_CPU_S
    assert kib <= _MOST_KIB


def test_a_budget_is_exact() -> None:
    """
    The last step and the last byte may be used, and not one more.
    """
    budget = ElfBudget()
    budget.spend(MOST_STEPS, MOST_KEPT_BYTES)

    assert (MOST_STEPS, MOST_KEPT_BYTES) == (budget.steps, budget.kept_bytes)
    for more in ((1, 0), (0, 1)):
        with pytest.raises(ElfError, match="too complex"):
            budget.spend(*more)


def test_each_question_for_a_rule_is_counted() -> None:
    """
    A table with long instructions may be asked for no more than its budget allows.
    """
    program = b"\x0a" * 100_000
    content = bytes(4) + b"\x01zR\0\x01\x78\x10\x01\x1b" + program
    cie = len(content).to_bytes(4, "little") + content
    fde = (17).to_bytes(4, "little") + (len(cie) + 4).to_bytes(4, "little")
    fde += bytes(4) + (100).to_bytes(4, "little") + bytes(5)
    budget = ElfBudget()
    table = FrameTable(memoryview(cie + fde), 0, X86_64.registers, budget)
    start = table.starts[0]

    table.rule_at(start)

    assert len(program) < budget.steps < 2 * len(program)
    budget.spend(MOST_STEPS - budget.steps - len(program))
    with pytest.raises(ElfError, match="too complex"):
        table.rule_at(start)


def test_a_sound_file_of_the_same_shape_is_read() -> None:
    """
    What makes the costly files is not refused by itself.
    """
    image = ElfImage(elf_file([Part(b".text", b"\xc3", flags=6), Part(b".rodata", b"word")]))

    assert ["", ".text", ".rodata", ".names"] == [section.name for section in image.sections]
    rodata = image.section(".rodata")
    assert rodata is not None
    assert b"word" == bytes(image.section_bytes(rodata))
