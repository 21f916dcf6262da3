"""Which request this very thread serves, as a library of its own publishes it."""

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

from gilscope.model.moment.seen import ServedRequest
from gilscope.process import procfs
from gilscope.process.files.thread_variables import VariableSearch
from gilscope.process.memory import ProcessMemory
from gilscope.process.published.thread_context import CONTEXT_VARIABLE, read_context
from support.paths import WORKLOADS


@pytest.mark.parametrize("options", [[], ["-DROOM=100000"]], ids=["small", "large"])
def test_what_is_published_is_read(tmp_path: Path, options: list[str]) -> None:
    """
    The ids while they are valid; nothing before, when they are not, and after.
    """
    built = tmp_path / "publisher.so"
    source = WORKLOADS / "context_publisher.c"
    command = ["gcc", "-O1", "-shared", "-fPIC", *options, "-o", str(built), str(source)]
    subprocess.run(command, check=True)
    library = ctypes.PyDLL(str(built))
    pthread_self = ctypes.PyDLL(None).pthread_self
    pthread_self.restype = ctypes.c_uint64
    descriptor = int(pthread_self())

    with ProcessMemory(os.getpid()) as memory:
        mappings = procfs.read_maps(os.getpid())
        search = VariableSearch(CONTEXT_VARIABLE, most_new=len(mappings))
        located, _ = search.locate(os.getpid(), mappings)
        assert located is not None
        place = located.place(memory)
        assert place is not None

        found = [read_context(memory, place, descriptor)]
        library.publish(0xA1, 0x02, 1)
        found.append(read_context(memory, place, descriptor))
        library.publish(0xA1, 0x02, 2)
        found.append(read_context(memory, place, descriptor))
        library.publish(0, 0, 1)
        found.append(read_context(memory, place, descriptor))
        library.withdraw()
        found.append(read_context(memory, place, descriptor))

    assert [None, ServedRequest("a1" * 16, "02" * 8), None, None, None] == found
