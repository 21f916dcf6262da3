"""Finds in a process the file that runs its transactions."""

import contextlib
import struct
from collections.abc import Collection
from pathlib import PurePosixPath

from gilscope.elf.image import ElfError, ElfImage
from gilscope.errors import NotPermitted, NotPython
from gilscope.model.transactions import Library, Method, StmProcess
from gilscope.process.files.code_files import CodeFile, code_files, load_biases
from gilscope.process.files.mapped_file import MappedFile, open_mapped
from gilscope.process.memory import ProcessMemory
from gilscope.process.procfs import Mapping
from gilscope.process.view import ProcessView
from gilscope.runtimes.stm.sites import MARKS, StmSites, find_sites
from gilscope.transactions.abi import Event
from gilscope.transactions.places import Places
from gilscope.values import dataclass

__all__ = ["CHECKED", "StmTarget", "inspect_stm"]

CHECKED = (
    "nor does any file that it maps define stm_start_transaction (PyPy-STM) or "
    "_ITM_beginTransaction (GCC's libitm)"
)
"""What was checked where nothing was found."""

_POINTER = struct.Struct("<Q")

_LIBITM = "libitm"
"""In the name of GCC's library, which has nothing of RPython's."""
_MARKS = dict(zip((Library.RPYTHON, Library.LIBITM), MARKS, strict=True))


@dataclass(frozen=True, slots=True)
class StmTarget:
    """A process whose transactions can be traced, and how."""

    process: StmProcess
    file: MappedFile
    sites: StmSites
    load_bias: int
    """Run-time address less the file's own."""

    @property
    def events(self) -> list[Event]:
        """What the program's numbers of events stand for."""
        return [Event[name or Event.OTHER.name] for name in self.sites.numbering.value]

    def places(self) -> Places:
        """Return what names the callers of functions."""
        return Places(self.file.image(), self.load_bias, self.file.mapping.path)

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def event_function(self, memory: ProcessMemory) -> int | None:
        """Return what the process gives its events to now, as an address of the file.

        None where it does not log. Raises OSError where the process runs another program.
        """
        if self.sites.event_pointer is None:
            return None
        return _read_pointer(memory, self.load_bias, self.sites.event_pointer)

    @property
    def place(self) -> object:
        """What processes have in common that are probed at the same places."""
        # As for the GIL, a build stands for the file: each container has a device of its own for
        # the layer that it shares with others.
        return self.process.build_id or self.file.identity


def inspect_stm(
    view: ProcessView, libraries: Collection[Library] = tuple(Library)
) -> StmTarget | None:
    """Return how to trace the transactions of the process of *view*; None where it has none.

    Those of other *libraries* are not looked for. Raises NotPython where it is gone, and
    NotPermitted.
    """
    pid = view.pid
    try:
        with ProcessMemory(pid) as memory:
            for code_file in code_files(view.mappings):
                name = PurePosixPath(code_file.path).name
                if Library.LIBITM not in libraries and _LIBITM in name:
                    continue
                target = _target(view, code_file, memory, libraries)
                if target is not None:
                    return target
    except (FileNotFoundError, ProcessLookupError) as error:
        raise NotPython(f"there is no process {pid}") from error
    except PermissionError as error:
        raise NotPermitted(f"not permitted to inspect process {pid} ({error.strerror})") from error
    return None


def _target(
    view: ProcessView, code_file: CodeFile, memory: ProcessMemory, libraries: Collection[Library]
) -> StmTarget | None:
    try:
        with contextlib.ExitStack() as closing:
            file = closing.enter_context(contextlib.closing(open_mapped(view.pid, code_file.first)))
            if not file.held.mentions(_MARKS[library] for library in libraries):
                return None
            image = file.image()
            load_bias, *_ = load_biases(image.segments, code_file)
            sites = find_sites(image, lambda vaddr: _read_pointer(memory, load_bias, vaddr))
            if sites is None or sites.library not in libraries:
                return None
            process = _process(view, code_file.first, image, sites)
            closing.pop_all()
            return StmTarget(process, file, sites, load_bias)
    except (ElfError, NotPython, ValueError):
        # It is no ELF file, empty, or not on disk any more.
        return None


def _read_pointer(memory: ProcessMemory, load_bias: int, vaddr: int) -> int | None:
    (value,) = _POINTER.unpack(memory.read(vaddr + load_bias, _POINTER.size))
    return value - load_bias if value else None


def _process(view: ProcessView, mapping: Mapping, image: ElfImage, sites: StmSites) -> StmProcess:
    return StmProcess(
        pid=view.pid,
        name=view.name,
        library=sites.library,
        method=sites.method,
        path=mapping.path,
        build_id=image.build_id,
        checks=sites.checks,
        container_id=view.container_id,
        pod_uid=view.pod_uid,
        numbering=sites.numbering.name if sites.method is Method.EVENTS else None,
    )
