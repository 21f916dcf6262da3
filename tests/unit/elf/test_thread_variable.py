"""Where a file says that it keeps a variable of each thread, by what compilers make."""

import subprocess
from pathlib import Path

import pytest

from gilscope.elf.image import ElfImage
from gilscope.elf.thread_variable import ThreadVariable, find_thread_variable
from support.paths import WORKLOADS

_SOURCE = WORKLOADS / "context_publisher.c"
_NAME = "otel_thread_ctx_v1"


def _found(folder: Path, *options: str, name: str = _NAME) -> ThreadVariable | None:
    built = folder / "built"
    subprocess.run(["gcc", "-O1", *options, "-o", str(built), str(_SOURCE)], check=True)
    return find_thread_variable(ElfImage(built.read_bytes()), name)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (["-mtls-dialect=gnu"], "modules"),
        (["-mtls-dialect=gnu2"], "descriptors"),
        (["-ftls-model=initial-exec"], "distances"),
        (["-mtls-dialect=gnu2", "-Wl,-Bsymbolic"], "descriptors"),
    ],
    ids=["gnu", "gnu2", "initial-exec", "bound to itself"],
)
def test_slots_are_of_the_kind_that_the_code_was_compiled_for(
    tmp_path: Path, options: list[str], kind: str
) -> None:
    """
    And of no other one.
    """
    found = _found(tmp_path, "-shared", "-fPIC", *options)

    assert found is not None
    kinds = {"modules": found.modules, "descriptors": found.descriptors}
    assert {kind} == {
        name for name, slots in {**kinds, "distances": found.distances}.items() if slots
    }


def test_a_program_knows_the_distance_itself(tmp_path: Path) -> None:
    """
    Its variables lie right before the thread's descriptor: 8 bytes and 628, aligned to 8.
    """
    entry = tmp_path / "main.c"
    entry.write_text(f'#include "{_SOURCE}"\nint main(void) {{ publish(1, 2, 1); return 0; }}\n')
    built = tmp_path / "built"
    command = ["gcc", "-O1", "-rdynamic", "-o", str(built), str(entry)]
    subprocess.run(command, check=True)
    found = find_thread_variable(ElfImage(built.read_bytes()), _NAME)

    assert found is not None
    assert ((), ()) == (found.descriptors, found.distances)
    assert -640 <= found.distance < 0
    assert found.distance == found.offset - 640


def test_what_a_file_does_not_export(tmp_path: Path) -> None:
    """
    Neither another variable, nor a function of that name, nor what it takes from elsewhere.
    """
    assert _found(tmp_path, "-shared", "-fPIC", name="another") is None
    assert _found(tmp_path, "-shared", "-fPIC", name="publish") is None
    assert _found(tmp_path, "-shared", "-fPIC", "-fvisibility=hidden", name="own") is None
