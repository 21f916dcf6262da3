"""Names what has called a function of the program, where it gave no reason in words."""

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from gilscope.elf.image import ElfError, ElfImage
from gilscope.text.printable import label

__all__ = ["Places"]


class Places:
    """The callers of one program's functions. A name is found once."""

    def __init__(self, image: ElfImage, load_bias: int, path: str) -> None:
        """Name code of *image*, which the process has at *load_bias* from its own addresses."""
        self._image = image
        self._load_bias = load_bias
        self._file = PurePosixPath(path).name
        self._names: dict[int, str] = {}

    def named(self, counts: Mapping[int, int]) -> dict[str, int]:
        """Return *counts*, by return address in the process, by name.

        That is the function, or where there are no symbols, the file and the address in it.
        """
        self._find(counts.keys() - self._names.keys())
        sums: dict[str, int] = {}
        for address, count in counts.items():
            name = self._names[address]
            sums[name] = sums.get(name, 0) + count
        return sums

    def _find(self, addresses: Collection[int]) -> None:
        if not addresses:
            return
        # What comes before the address is the call.
        calls = {address: address - self._load_bias - 1 for address in addresses}
        try:
            functions = self._image.functions_at(calls.values())
        except (ElfError, OSError, ValueError):
            functions = {}
        for address, vaddr in calls.items():
            if vaddr in functions:
                self._names[address] = f"at {label(functions[vaddr].name)}"
            elif self._image.is_code(vaddr):
                self._names[address] = f"at {label(self._file)}+{vaddr + 1:#x}"
            else:
                self._names[address] = "at code that is in no file"
