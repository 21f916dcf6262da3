"""What a runtime must tell, so that waits for its locks can be traced.

Three steps, each known for less time than the one before. A `Runtime` is a language's and is asked
whether a process runs it. A `Build` is what stands in the file that it runs: where threads begin to
wait, where they have the lock, where they release it. An `Instance` is what that keeps in the
memory of one process: its locks, its threads and its code, which change while it runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from gilscope.model.gil import Gil
from gilscope.model.moment.seen import LockNow, ThreadStack
from gilscope.model.stack import Frame, Stack
from gilscope.process.files.mapped_file import MappedFile
from gilscope.process.memory import ProcessMemory
from gilscope.process.reads import Reads
from gilscope.runtimes.interpreter_files import LikelyFiles
from gilscope.runtimes.site_cache import SiteCache
from gilscope.runtimes.sites import LockForm, Sites
from gilscope.values import Record, dataclass

__all__ = [
    "Build",
    "Code",
    "HeldWord",
    "HolderSample",
    "Holders",
    "Instance",
    "Locks",
    "Runtime",
    "Standing",
    "Threads",
]


class HeldWord(NamedTuple):
    """The word of memory by which a lock says whether it is held."""

    offset: int
    """From the lock's address."""
    size: int
    """Bytes, 8 at the most."""
    value: int
    is_held_if_equal: bool
    """It is held if the word has this value; otherwise if it has any other one."""


class Locks(Protocol):
    """Samples the locks themselves, in the memory of their process."""

    def is_locked(self, cond: int) -> bool | None:
        """Return whether the lock is held now; None where it cannot be read."""

    def holder_tid(self, cond: int) -> int | None:
        """Return the thread that holds the lock, or held it last; None if it cannot be told."""


@dataclass(frozen=True, slots=True)
class HolderSample:
    """The thread that holds a lock, at one instant."""

    stack: Stack
    tid: int | None
    """As the agent sees it; None: it cannot be told."""
    thread: int
    """What the runtime knows it by: an address."""
    switch_number: int
    """How often the lock has gone from one thread to another."""
    position: int
    """The same number: the same instructions of the same functions."""
    is_collecting: bool
    """Whether it collects garbage."""
    generation: int | None = None
    """Of what it collects; None: that cannot be told."""
    is_compiling: bool = False
    """Whether the runtime compiles what it runs."""
    tells_native: bool = True
    """Whether its instructions tell Python code from C code; not so where that is compiled as it
    runs."""


class Holders(Protocol):
    """Finds out, from outside, what the threads do that hold locks.

    One thread may ask at a time, which waits for memory however long that takes.
    """

    def sample(self, cond: int) -> HolderSample | None:
        """Return what the thread does that holds the lock; None: nobody holds it.

        Raises OSError where the process is not read any more.
        """

    def is_held_by(self, cond: int, sample: HolderSample) -> bool:
        """Return whether the thread of *sample* holds the lock now, and no other did in between.

        Raises OSError likewise.
        """

    def is_part_of(self, cond: int, address: int) -> bool:
        """Return whether *address* is of the lock: who sleeps there waits for it.

        That thread does not hold it, whatever the lock says: it is being handed over.
        """


class Standing(Protocol):
    """Finds out, from outside, where all threads stand. One thread may use it.

    All of it raises OSError where the process is not read any more, and TornRead where what it has
    in memory makes no sense.
    """

    def stacks(self, most: int) -> Sequence[ThreadStack]:
        """Return where threads stand in each interpreter, of *most* at the most."""

    def locks(self) -> Sequence[LockNow]:
        """Return every lock and who holds it now."""

    def tids_by_own_id(self) -> Mapping[int, int]:
        """Return the threads, as the agent sees tids, by what the process itself calls them."""


class Threads(Protocol):
    """The roles of the threads, by tid as the agent sees tids. A known one never changes."""

    @property
    def over_limit(self) -> str:
        """What there was too much of to be read, in words."""

    @property
    def known(self) -> dict[int, str]:
        """Those that have been read."""

    @property
    def is_wanted(self) -> bool:
        """Whether `read_wanted` has anything to do."""

    def want(self, tid: int) -> None:
        """Ask for the role of *tid* at the next reading."""

    def read_wanted(self) -> None:
        """Read the roles that are wanted; those of threads that just start come later."""

    def learn(self, tid: int, frames: Sequence[Frame]) -> None:
        """Take note of the outermost *frames* in which *tid* has waited, outermost first."""

    def final(self, tid: int) -> str:
        """Return the role of a thread that has ended."""

    def settle(self) -> None:
        """Decide on the roles of all threads by what is known of them: nothing more will be."""

    def forget(self, tid: int) -> None:
        """Let *tid* be another thread from now on."""


class Code(Protocol):
    """Names and lines of code that the probes have met."""

    def frames(self, places: Iterable[tuple[int, int]]) -> tuple[Frame, ...]:
        """Return the frame of each address of code and instruction in it."""

    def whole_stack(self, places: Iterable[tuple[int, int]]) -> tuple[Frame, ...] | None:
        """Return the frames of a stack whose places are not one frame each; None: they are."""

    def is_same(self, code: int, identity: int) -> bool:
        """Return whether what is at *code* is still what the probes know by *identity*."""

    def forget(self, code: int) -> None:
        """Read *code* again when it is asked for: there is something else now."""


class Instance(Protocol):
    """A runtime in the memory of one process."""

    @property
    def locks(self) -> Locks:
        """Its locks, as their own fields show them."""

    @property
    def lock_word(self) -> HeldWord:
        """How each of its locks says whether it is held."""

    @property
    def holders(self) -> Holders:
        """Where the holders of its locks are."""

    @property
    def threads(self) -> Threads:
        """Its threads."""

    @property
    def standing(self) -> Standing:
        """Where all of them stand at a moment."""

    @property
    def has_own_gils(self) -> bool:
        """Whether each interpreter may have a lock of its own, so that there can be several."""

    @property
    def lock_parts(self) -> Record:
        """Where the parts of a lock are, from its `cond`: members of ``struct target``."""

    def gils(self) -> list[Gil]:
        """Return every lock once, none while there is none yet.

        Raises TornRead for what cannot be one, LimitExceeded for too many, and OSError.
        """

    def is_gil_off(self) -> bool | None:
        """Return whether its threads do without a GIL, though it could have one.

        None: it has not been initialised. Raises as `gils` does.
        """

    def modules_that_need_gil(self) -> tuple[str, ...]:
        """Return the names of those that need the GIL of a Python that could do without one.

        Empty where it always has one. Raises as `gils` does.
        """

    def count_threads(self) -> int:
        """Return how many threads it knows, once for each interpreter; raises as `gils` does."""

    def code(self) -> Code:
        """Return what reads names and lines, and remembers them."""

    def frame_walk(self) -> Record:
        """Return ``struct python``, by which probes walk stacks; raises OSError if it is gone."""

    def probe_records(self) -> Mapping[str, Record]:
        """Return what else probes have to know of it, by the table that has it."""

    def check_interval(self) -> int | None:
        """Return after how many bytecodes a thread gives the lock away by itself.

        None: it does so when it is asked to, or that cannot be read.
        """


class Build(Protocol):
    """A runtime in the file that a process runs it from."""

    @property
    def pid(self) -> int:
        """The process."""

    @property
    def file(self) -> MappedFile:
        """What its code and its static memory are mapped from."""

    @property
    def build_id(self) -> str:
        """What tells the file from every other one."""

    @property
    def load_bias(self) -> int:
        """Run-time address less the file's own, of the copy that runs."""

    @property
    def version(self) -> str:
        """Its version, as it calls it itself."""

    @property
    def runtime(self) -> str:
        """The `name` of the runtime that it is of."""

    @property
    def lock_form(self) -> LockForm:
        """What its locks are made of."""

    @property
    def site_file(self) -> MappedFile:
        """What its sites lie in: `file`, or a library in which its threads wait.

        Known once `sites` has found them.
        """

    def sites(self, cache: SiteCache) -> Sites:
        """Return where probes belong; raises ElfError or GilCodeNotFound."""

    def instance(self, memory: ProcessMemory, reads: Reads) -> Instance:
        """Return what it keeps in *memory*, which is read by *reads*."""

    def close(self) -> None:
        """Close its files."""


class Runtime(Protocol):
    """A language's runtime, as far as gilscope knows it."""

    name: str

    def detect(self, files: LikelyFiles) -> Build:
        """Return how the process that has mapped *files* runs it.

        Raises NotPython where it does not, NotPermitted, UnsupportedPython, NoGil or
        GilCodeNotFound.
        """
