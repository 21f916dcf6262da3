"""A CPython 2.7 made of bytes: what the readers would find."""

from typing import cast

from gilscope.process.memory import ProcessMemory
from gilscope.runtimes.cpython27.detect import Interpreter27
from gilscope.runtimes.cpython27.instance import CPython27Instance
from gilscope.runtimes.cpython27.layout import LAYOUT, TICK_COUNTER
from support.gil.handed_reads import HandedReads
from support.gil.python_in_memory import PythonStructures

__all__ = ["Python27InMemory"]

_SEMAPHORE = 32
_DESCRIPTOR = 1024


class Python27InMemory(PythonStructures):
    """The process *pid*, before its first thread is started: it has no lock yet."""

    def __init__(self, pid: int) -> None:
        super().__init__(LAYOUT)
        self.lock_pointer, self.current, self.check_interval = self.new(8), self.new(8), self.new(8)
        self.put_int(self.check_interval, 100, 4)
        # The file's own addresses are those of the memory.
        interpreter = Interpreter27(
            version="2.7.18",
            lock_pointer=self.lock_pointer,
            current=self.current,
            check_interval=self.check_interval,
            interpreters_head=self.runtime.address,
            code_type=self.code_type,
        )
        memory = cast("ProcessMemory", self)
        self.handed = HandedReads()
        self.instance = CPython27Instance(pid, interpreter, 0, memory, self.handed)

    def semaphore(self, *, value: int = 0, waiters: int = 0) -> int:
        """Return the address of a new lock, with so many threads that wait for it."""
        address = self.new(_SEMAPHORE)
        self.put_int(address, waiters << 32 | value)
        self.put_int(self.lock_pointer, address)
        return address

    def text(self, text: str) -> int:
        """Return the address of a new str, which has bytes."""
        return self.bytes_object(text.encode())

    def kernel_thread(self, tid: int) -> int:
        """Return what pthread_self() is in a thread that the kernel knows by *tid*."""
        pthread = self.layout.pthread
        assert pthread.descriptor_self is not None
        address = self.new(_DESCRIPTOR)
        self.put_int(address + pthread.descriptor_self, address)
        self.put_int(address + pthread.descriptor_tid, tid, 4)
        return address

    def set_ticks(self, tstate: int, ticks: int) -> None:
        """Let the thread have come to so many ticks."""
        self.put_int(tstate + TICK_COUNTER, ticks, 4)
