"""Reads which extension modules have made a free-threaded CPython switch its GIL on.

Such a module does not say that it can do without (`Py_mod_gil`). In v3.13: GH-116882 ("gh-116322:
Add Py_mod_gil module slot"), a module object keeps what it says in `md_gil`; since v3.15 in
`md_requires_gil`, one of two marks of a byte each. A module that is made of Python code has neither
a definition nor a say.
"""

import struct
from collections.abc import Iterator
from itertools import islice

from gilscope.process.remote_read import Memory, TornRead, read_bytes, read_pointer, retried
from gilscope.runtimes.cpython.code.module_layout import ModuleLayout
from gilscope.runtimes.cpython.code.strings import read_str
from gilscope.runtimes.cpython.runtime import Runtime, read_interpreters

__all__ = ["modules_that_need_gil"]

_MOST_MODULES = 20_000
"""Of a process; more are not read."""
_MOST_NAMED = 100
# PyDictKeysObject (pycore_dict.h): a count of references, logarithms of two sizes, the kind; how
# many entries may come, and how many there are; the index; the entries.
_KEYS_HEAD = struct.Struct("<8xBBB5xqq")
_WITH_HASHES = 0
_MOST_INDEX_BITS = 24
_MOST_ENTRIES = 1 << 24


def modules_that_need_gil(runtime: Runtime) -> tuple[str, ...]:
    """Return the names of the first hundred of them, in the order of their import.

    None of a build that always has its GIL. Raises TornRead, as while modules are imported.
    """
    return retried(lambda: tuple(islice(_needing(runtime), _MOST_NAMED)))


def _needing(runtime: Runtime) -> Iterator[str]:
    memory, layout = runtime.memory, runtime.layout
    form = layout.modules
    if form is None:
        return
    for name, module in islice(_modules(runtime, form), _MOST_MODULES):
        if form.needs_gil(read_bytes(memory, module, form.size)):
            yield read_str(runtime, name)


def _modules(runtime: Runtime, form: ModuleLayout) -> Iterator[tuple[int, int]]:
    """Yield the addresses of names and modules, of all interpreters."""
    for interpreter, _ in read_interpreters(runtime):
        modules = read_pointer(runtime.memory, interpreter + form.in_interpreter)
        if modules:
            yield from _items(runtime.memory, modules + form.dict_keys)


def _items(memory: Memory, keys_at: int) -> Iterator[tuple[int, int]]:
    """Yield the addresses of the keys and of the values of a dict."""
    keys = read_pointer(memory, keys_at)
    head = read_bytes(memory, keys, _KEYS_HEAD.size)
    _, index_bits, kind, usable, entries = _KEYS_HEAD.unpack(head)
    if not (0 <= entries <= _MOST_ENTRIES and usable >= 0 and index_bits <= _MOST_INDEX_BITS):
        raise TornRead(f"no keys of a dict at {keys:#x}: {entries} entries")
    entry = struct.Struct("<8xQQ" if kind == _WITH_HASHES else "<QQ")
    begin, count = keys + _KEYS_HEAD.size + (1 << index_bits), min(entries, _MOST_MODULES)
    content = read_bytes(memory, begin, count * entry.size)
    for key, value in entry.iter_unpack(content):
        if value:
            yield key, value
