"""The unwind tables of the files that this very process has mapped."""

import ctypes
import os
import subprocess

import pytest

from gilscope.elf.eh_frame import read_frame_table
from gilscope.process.files import mapped_file, unwind_rules
from gilscope.process.files.code_mappings import CodeMappings
from gilscope.process.files.mapped_file import MappedFile, open_mapped
from gilscope.process.files.unwind_rules import UnwindRules
from gilscope.process.procfs import Mapping


def _getenv() -> int:
    address = ctypes.cast(ctypes.CDLL(None).getenv, ctypes.c_void_p).value
    assert address is not None
    return address


def test_the_rule_of_a_function() -> None:
    """
    The one that the table of its file has, at its own address.
    """
    mappings = CodeMappings(os.getpid())
    file = mappings.file(_getenv())
    assert file is not None
    opened = open_mapped(os.getpid(), file.first)
    expected = read_frame_table(opened.image()).rule_at(_getenv() - file.first.start)
    opened.close()

    assert expected is not None
    assert expected == UnwindRules(os.getpid(), mappings).at(_getenv())


def test_code_that_no_table_knows() -> None:
    """
    Neither data nor the code of a process that is gone.
    """
    held = ctypes.create_string_buffer(8)
    ended = subprocess.Popen(["true"])
    ended.wait()

    assert UnwindRules(os.getpid(), CodeMappings(os.getpid())).at(ctypes.addressof(held)) is None
    assert UnwindRules(ended.pid, CodeMappings(ended.pid)).at(_getenv()) is None


def test_tables_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    And so is each rule.
    """
    opened = []

    def open_mapped(pid: int, mapping: Mapping) -> MappedFile:
        opened.append(mapping)
        return mapped_file.open_mapped(pid, mapping)

    monkeypatch.setattr(unwind_rules, "open_mapped", open_mapped)
    rules = UnwindRules(os.getpid(), CodeMappings(os.getpid()))
    found = [rules.at(_getenv() + offset) for offset in (0, 1, 0)]

    assert found[0] == found[2]
    assert 1 == len(opened)
