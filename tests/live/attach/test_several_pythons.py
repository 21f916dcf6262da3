"""Processes that map an interpreter more than once, or more than one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accuracy.truth import Workload, started
from gilscope.errors import UnsupportedPython
from gilscope.gil.tracing.account import GilAccount
from support.interpreters.builds import build
from support.interpreters.known import Interpreter
from support.tracing.observations import assert_counts_exactly

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_STATIC = "/usr/bin/python3.11"

# As a symbolizer or an unwinder does, at a lower address than the one where it runs.
_MAP_AGAIN = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
fd = os.open({file!r}, os.O_RDONLY)
at = libc.mmap(ctypes.c_void_p(0x10000000), ctypes.c_size_t(1 << 20), 1, 0x12, fd, 0)
assert at == 0x10000000, at
"""
_LOAD = "import ctypes; ctypes.CDLL({file!r})"
# With a C library of its own, and a lock and threads of its own.
_RUN_TOO = """
import ctypes, threading
libc = ctypes.CDLL(None)
libc.dlmopen.restype = libc.dlsym.restype = ctypes.c_void_p
libc.dlmopen.argtypes = ctypes.c_long, ctypes.c_char_p, ctypes.c_int
libc.dlsym.argtypes = ctypes.c_void_p, ctypes.c_char_p
handle = libc.dlmopen(-1, {file!r}.encode(), 2)
assert handle
initialize = ctypes.CFUNCTYPE(None, ctypes.c_int)(libc.dlsym(handle, b"Py_InitializeEx"))
initialize(0)
"""


@contextmanager
def _beginning_with(code: str, command: list[str], folder: Path) -> Iterator[Workload]:
    """Start exact_count.py, which runs *code* before all else."""
    (folder / "sitecustomize.py").write_text(code)
    with started(["env", f"PYTHONPATH={folder}", *command], "exact_count.py") as workload:
        yield workload


def _shared() -> Interpreter:
    return build("pyenv-3.12")


def test_its_own_library_is_mapped_to_be_read(tracer: GilAccount, tmp_path: Path) -> None:
    """
    Where the library is run is where its data is.
    """
    shared = _shared()
    command = [*shared.argv]
    code = _MAP_AGAIN.format(file=str(shared.elf))
    with _beginning_with(code, command, tmp_path) as workload:
        target = tracer.attach(workload.pid)
        assert target.build.file.mapping.start == 0x10000000
        assert target.build.load_bias > 0x10000000
        assert_counts_exactly(tracer, workload)


def test_a_library_that_a_static_python_has_loaded_by_mistake(
    tracer: GilAccount, tmp_path: Path
) -> None:
    """
    As an extension does that is linked with it: the lock of the program is the one in use.
    """
    code = _LOAD.format(file=str(build("pyenv-3.11").elf))
    with _beginning_with(code, [_STATIC], tmp_path) as workload:
        target = tracer.attach(workload.pid)
        assert _STATIC == target.build.file.mapping.path
        assert_counts_exactly(tracer, workload)


def test_a_library_of_another_version_that_nobody_runs(tracer: GilAccount, tmp_path: Path) -> None:
    """
    Two libraries, of which one has threads.
    """
    shared = _shared()
    code = _LOAD.format(file=str(build("pyenv-3.11").elf))
    with _beginning_with(code, [*shared.argv], tmp_path) as workload:
        target = tracer.attach(workload.pid)
        assert "3.12.1" == target.process.python
        assert_counts_exactly(tracer, workload)


def test_two_pythons_that_both_run(tracer: GilAccount, tmp_path: Path) -> None:
    """
    No figure is right for both, so there is none, and it is said.
    """
    code = _RUN_TOO.format(file=str(_shared().elf))
    with (
        _beginning_with(code, [_STATIC], tmp_path) as workload,
        pytest.raises(UnsupportedPython, match="runs several Pythons at once"),
    ):
        tracer.attach(workload.pid)
