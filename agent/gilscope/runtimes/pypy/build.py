"""PyPy as it stands in the file that a process runs it from."""

from typing import Final

from gilscope.elf.image import ElfError
from gilscope.errors import GilCodeNotFound
from gilscope.process.files.mapped_file import MappedFile
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.runtimes.cpython.sites.search import sites_of
from gilscope.runtimes.pypy.facts import Facts
from gilscope.runtimes.pypy.instance import PyPyInstance
from gilscope.runtimes.site_cache import SiteCache, default_folder
from gilscope.runtimes.sites import LockForm, Sites
from gilscope.values import dataclass

__all__ = ["PyPyBuild"]

_RESOLVER: Final = "gilscope.runtimes.pypy.sites.resolve"


@dataclass(slots=True)
class PyPyBuild:
    """The PyPy of a process: a `gilscope.runtimes.base.Build`."""

    pid: int
    file: MappedFile
    build_id: str
    load_bias: int
    facts: Facts | None = None
    """What its file says of it, once sites have been asked for."""

    @property
    def version(self) -> str:
        """``3.9.16 (PyPy 7.3.11)``, or ``PyPy`` before sites have been asked for."""
        return "PyPy" if self.facts is None else self.facts.version

    @property
    def runtime(self) -> str:
        """``pypy``."""
        return "pypy"

    @property
    def lock_form(self) -> LockForm:
        """Its threads queue, and the first of them looks for the lock to be free."""
        return LockForm.TURNS

    @property
    def site_file(self) -> MappedFile:
        """Its own file."""
        return self.file

    def sites(self, cache: SiteCache) -> Sites:
        """Return its GIL code, which is searched for where *cache* does not know it."""
        sites = sites_of(self.file.held, cache, resolver=_RESOLVER)
        self.facts = Facts(sites.facts)
        return sites

    def instance(self, memory: ProcessMemory, reads: Reads) -> PyPyInstance:
        """Return what it keeps in *memory*, which its file has to tell of first.

        Raises GilCodeNotFound where that cannot be.
        """
        return PyPyInstance(self.pid, self._known_facts(), self.load_bias, memory, reads)

    def close(self) -> None:
        """Close its file."""
        self.file.close()

    def _known_facts(self) -> Facts:
        if self.facts is None:
            try:
                self.sites(SiteCache(default_folder()))
            except ElfError as error:
                raise GilCodeNotFound(str(error)) from error
        return self.facts or Facts({})
