"""CPython 2.7 as it stands in the files that a process runs it from: its own, and libc."""

from dataclasses import replace
from typing import Final

from gilscope.process.files.code_files import CodeFile
from gilscope.process.files.mapped_file import MappedFile, open_mapped
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.runtimes.cpython.sites.search import sites_of
from gilscope.runtimes.cpython27.detect import Interpreter27
from gilscope.runtimes.cpython27.instance import CPython27Instance
from gilscope.runtimes.site_cache import SiteCache
from gilscope.runtimes.sites import LockForm, Sites
from gilscope.values import dataclass

__all__ = ["CPython27Build"]

_CALLERS: Final = "gilscope.runtimes.cpython27.callers"
_SEMAPHORE: Final = "gilscope.runtimes.cpython27.semaphore"


@dataclass(slots=True)
class CPython27Build:
    """The interpreter of a process: a `gilscope.runtimes.base.Build`."""

    pid: int
    file: MappedFile
    interpreter: Interpreter27
    build_id: str
    load_bias: int
    libc: CodeFile
    """What has `sem_wait`: libc, or libpthread."""
    library: MappedFile | None = None
    """The same, once sites have been asked for."""

    @property
    def version(self) -> str:
        """``2.7.18``, or ``2.7`` where the file does not tell the micro version."""
        return self.interpreter.version

    @property
    def runtime(self) -> str:
        """``cpython``."""
        return "cpython"

    @property
    def lock_form(self) -> LockForm:
        """Its lock is a semaphore of the C library's."""
        return LockForm.SEMAPHORE

    @property
    def site_file(self) -> MappedFile:
        """What the sites lie in: libc, or libpthread, once `sites` has found them."""
        return self.library or self.file

    def sites(self, cache: SiteCache) -> Sites:
        """Return where threads wait for a semaphore in libc, and how to tell who called it."""
        callers = sites_of(self.file.held, cache, resolver=_CALLERS)
        if self.library is None:
            self.library = open_mapped(self.pid, self.libc.first)
        waits = sites_of(self.library.held, cache, resolver=_SEMAPHORE)
        return replace(waits, callers=callers.callers, checks=(*waits.checks, *callers.checks))

    def instance(self, memory: ProcessMemory, reads: Reads) -> CPython27Instance:
        """Return what it keeps in *memory*."""
        return CPython27Instance(self.pid, self.interpreter, self.load_bias, memory, reads)

    def close(self) -> None:
        """Close its files."""
        self.file.close()
        if self.library is not None:
            self.library.close()
