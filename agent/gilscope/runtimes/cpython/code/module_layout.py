"""Says where module objects of a free-threaded CPython keep whether they need its GIL."""

from collections.abc import Mapping

from gilscope.values import dataclass

__all__ = ["ModuleLayout", "module_layout"]

_DICT_KEYS = 48
# PyModuleObject (pycore_moduleobject.h) of a free-threaded build, of 3.13.12, 3.14.9 and 3.15.1:
# where `md_def` and `md_gil` are, how wide, and Py_MOD_GIL_USED; since v3.15 `md_token_is_def` and
# `md_requires_gil`. tests/live/attach/test_gil_needed.py reads them in live processes of each.
_MODULE_MARKS: Mapping[tuple[int, int], tuple[int, int, int, int]] = {
    (3, 13): (40, 72, 8, 0),
    (3, 14): (40, 72, 8, 0),
    (3, 15): (64, 65, 1, 1),
}


@dataclass(frozen=True, slots=True)
class ModuleLayout:
    """Of module objects, in a free-threaded build: whether one needs a GIL."""

    in_interpreter: int
    """Pointer to the dict of all modules that have been imported."""
    dict_keys: int
    """In a dict: pointer to its keys (``PyDictObject``)."""
    definition: int
    """Not 0 if the module is made of C code and has a definition."""
    gil: int
    """What it says of the GIL."""
    width: int
    """Of both, in bytes."""
    value_if_needed: int
    """Of `gil`."""

    def needs_gil(self, head: bytes) -> bool:
        """Return whether a module needs it that begins with *head*, of `size` bytes."""
        definition = int.from_bytes(head[self.definition :][: self.width], "little")
        gil = int.from_bytes(head[self.gil :][: self.width], "little")
        return definition != 0 and gil == self.value_if_needed

    @property
    def size(self) -> int:
        """How much of a module has to be read."""
        return self.gil + self.width


def module_layout(minor: tuple[int, int], imported_modules: int) -> ModuleLayout:
    """Return that of *minor*, whose interpreters have their modules at *imported_modules*."""
    definition, gil, width, value = _MODULE_MARKS[minor]
    return ModuleLayout(imported_modules, _DICT_KEYS, definition, gil, width, value)
