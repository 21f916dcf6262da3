"""CPython as it stands in the file that a process runs it from."""

from gilscope.process.files.mapped_file import MappedFile
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.runtimes.cpython.detect import Interpreter
from gilscope.runtimes.cpython.instance import CPythonInstance
from gilscope.runtimes.cpython.runtime import runtime_of
from gilscope.runtimes.cpython.sites.search import sites_of
from gilscope.runtimes.site_cache import SiteCache
from gilscope.runtimes.sites import LockForm, Sites
from gilscope.values import dataclass

__all__ = ["CPythonBuild"]


@dataclass(frozen=True, slots=True)
class CPythonBuild:
    """The interpreter of a process: a `gilscope.runtimes.base.Build`."""

    pid: int
    file: MappedFile
    interpreter: Interpreter
    build_id: str
    load_bias: int

    @property
    def version(self) -> str:
        """``3.11.2``, or ``3.9`` where the file does not tell the micro version."""
        return self.interpreter.version

    @property
    def runtime(self) -> str:
        """``cpython``."""
        return "cpython"

    @property
    def lock_form(self) -> LockForm:
        """Its GIL is a condition variable with a mutex."""
        return LockForm.CONDITION

    @property
    def site_file(self) -> MappedFile:
        """Its own file: `take_gil` and `drop_gil` are in there."""
        return self.file

    def sites(self, cache: SiteCache) -> Sites:
        """Return its GIL code, which is searched for where *cache* does not know it."""
        sites = sites_of(self.file.held, cache)
        if self.interpreter.static_lock is not None:
            self.interpreter.static_lock.check(sites)
        return sites

    def instance(self, memory: ProcessMemory, reads: Reads) -> CPythonInstance:
        """Return what it keeps in *memory*; raises what `runtime_of` raises."""
        runtime = reads(lambda: runtime_of(memory, self.interpreter, self.load_bias))
        return CPythonInstance(self.pid, runtime, memory, reads)

    def close(self) -> None:
        """Close its file."""
        self.file.close()
