"""Files that this very process has mapped as code."""

import ctypes
import os

from gilscope.process.files.code_mappings import CodeMappings


def test_the_file_at_an_address() -> None:
    """
    The C library's for its functions, and none for data.
    """
    mappings = CodeMappings(os.getpid())
    address = ctypes.cast(ctypes.CDLL(None).getenv, ctypes.c_void_p).value
    held = ctypes.create_string_buffer(8)
    assert address is not None
    file = mappings.file(address)

    assert file is not None
    assert "/libc" in file.path
    assert mappings.file(ctypes.addressof(held)) is None


def test_a_process_that_is_not_there() -> None:
    """
    It has no files.
    """
    assert CodeMappings(2**22 + 1).file(0x1000) is None
