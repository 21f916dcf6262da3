"""Which files of a process are read for its transactions."""

import ctypes
import os
import shutil
from pathlib import Path

import pytest

from gilscope.model.transactions import Library
from gilscope.process import procfs
from gilscope.process.files.mapped_file import MappedFile, open_mapped
from gilscope.process.procfs import Mapping
from gilscope.process.view import view_of
from gilscope.transactions import target as target_module
from gilscope.transactions.target import inspect_stm

_SOURCE = "_ctypes"
"""In the name of a library that is there already."""


@pytest.mark.parametrize("libraries", [{Library.RPYTHON}, set(Library)])
def test_gccs_library_is_not_even_opened_unless_asked_for(
    libraries: set[Library], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    This very process maps a file of that name, and another one; neither has transactions.
    """
    copied = next(each.path for each in procfs.read_maps(os.getpid()) if _SOURCE in each.path)
    paths = [os.fspath(tmp_path / name) for name in ("libitm.so.1", "libother.so")]
    for path in paths:
        shutil.copy(copied, path)
        ctypes.CDLL(path)
    mappings = [each for each in procfs.read_maps(os.getpid()) if each.path in paths]
    monkeypatch.setattr(procfs, "read_maps", lambda _pid: mappings)
    opened = []

    def noted(pid: int, mapping: Mapping) -> MappedFile:
        opened.append(mapping.path)
        return open_mapped(pid, mapping)

    monkeypatch.setattr(target_module, "open_mapped", noted)

    assert inspect_stm(view_of(os.getpid()), libraries) is None
    assert (paths if Library.LIBITM in libraries else paths[1:]) == sorted(opened)
