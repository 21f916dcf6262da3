"""Where the threads of a process keep a variable, found from outside of it."""

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

from gilscope.process import procfs
from gilscope.process.files.thread_variables import VariablePlace, VariableSearch
from gilscope.process.memory import ProcessMemory
from support.paths import WORKLOADS

_NAME = "otel_thread_ctx_v1"


@pytest.mark.parametrize(
    "options",
    [["-mtls-dialect=gnu2"], ["-ftls-model=initial-exec"], ["-mtls-dialect=gnu", "-DROOM=100000"]],
    ids=["beside the others", "with a fixed distance", "in a block of its own"],
)
def test_the_place_leads_to_the_variable(tmp_path: Path, options: list[str]) -> None:
    """
    From the descriptor of this thread, as the probes step to it.
    """
    built = tmp_path / "publisher.so"
    source = WORKLOADS / "context_publisher.c"
    command = ["gcc", "-O1", "-shared", "-fPIC", *options, "-o", str(built), str(source)]
    subprocess.run(command, check=True)
    library = ctypes.PyDLL(str(built))
    library.publish(0xA1, 1, 1)
    here = ctypes.c_void_p.in_dll(library, _NAME)

    with ProcessMemory(os.getpid()) as memory:
        mappings = procfs.read_maps(os.getpid())
        search = VariableSearch(_NAME)
        is_complete = False
        while not is_complete:
            located, is_complete = search.locate(os.getpid(), mappings)
        assert located is not None
        found = located.place(memory)

        assert found is not None
        assert ctypes.addressof(here) == _variable(memory, found)


def _variable(memory: ProcessMemory, place: VariablePlace) -> int:
    pthread_self = ctypes.PyDLL(None).pthread_self
    pthread_self.restype = ctypes.c_uint64
    descriptor = int(pthread_self())
    if not place.module:
        return descriptor + place.offset
    blocks = int.from_bytes(memory.read(descriptor + 8, 8), "little")
    length = int.from_bytes(memory.read(blocks + place.length_at, 8), "little")
    assert place.module <= length
    block = memory.read(blocks + place.entry_size * place.module, 8)
    return int.from_bytes(block, "little") + place.offset


def test_a_process_without_it() -> None:
    """
    Its files are looked through once, some at a time.
    """
    mappings = procfs.read_maps(os.getpid())
    search = VariableSearch("no_such_variable", most_new=5)
    found = [search.locate(os.getpid(), mappings) for _ in mappings]

    assert (None, False) == found[0]
    assert (None, True) == found[-1]
