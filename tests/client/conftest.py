"""An agent that gives figures as a test wants them, in memory that the client maps."""

import mmap
import os
import struct
import threading
from collections.abc import Iterator

import pytest

from gilscope.gil.abi import REGION_HEAD, REGION_PLACE, REGION_PLACES, REGION_TRIES
from gilscope_client import _agent

_AGENT, _STATE = 4711, 5
_AGENT_AT, _STATE_AT = 0, 64


class FakeAgent:
    """Writes what the probes write. Until it tells holds, the time is nothing to it."""

    def __init__(self) -> None:
        self._places, self._words = (os.memfd_create(name) for name in ("places", "words"))
        os.ftruncate(self._places, REGION_PLACES * REGION_PLACE.layout().size)
        os.ftruncate(self._words, mmap.PAGESIZE)
        self._lock = threading.Lock()
        self._waits: dict[int, tuple[int, int, int, int]] = {}
        self._head: dict[str, int] = {}
        self._now_ns = 0
        self.begin()

    def begin(self) -> None:
        """Give the memory to the client, as if it had asked."""
        os.pwrite(self._words, struct.pack("=I", _AGENT), _AGENT_AT)
        os.pwrite(self._words, struct.pack("=Q", _STATE), _STATE_AT)
        agent, state = (_AGENT_AT, _AGENT), (_STATE_AT, _STATE)
        _agent.agent.reading = _agent.Reading(self._places, self._words, agent, state)

    def die(self) -> None:
        """Be killed: the kernel marks it."""
        os.pwrite(self._words, struct.pack("=I", _AGENT | 1 << 30), _AGENT_AT)

    def stop(self) -> None:
        """Trace the process no more."""
        os.pwrite(self._words, struct.pack("=Q", 0), _STATE_AT)

    def wait(self, ns: int, *, at: int = 0) -> None:
        """Let the calling thread have waited *ns* more, at place *at* of those that it may have."""
        tid = threading.get_native_id()
        with self._lock:
            place, wait_ns, waits, held_ns = self._waits.get(tid, (at, 0, 0, 0))
            self._waits[tid] = place, wait_ns + ns, waits + 1, held_ns
        self._now_ns += ns
        self.write(tid, place, wait_ns + ns, waits + 1, held_ns)

    def write(self, tid: int, place: int, wait_ns: int, waits: int, held_ns: int = 0) -> None:
        """Write one place, of those that thread *tid* may have."""
        record = {
            "tid": tid,
            "owner": tid,
            "wait_ns": wait_ns,
            "waits": waits,
            "held_ns": held_ns,
        }
        layout = REGION_PLACE.layout()
        number = 1 + tid % (REGION_PLACES - REGION_TRIES) + place
        os.pwrite(self._places, layout.pack(record), number * layout.size)

    def tell_holds(self) -> None:
        """Be in full mode, by the clock `now_ns`, from now on."""
        self._write_head(tells_holds=1)
        self.begin()

    def now_ns(self) -> int:
        """Return the time."""
        return self._now_ns

    def run(self, ns: int) -> None:
        """Let *ns* go by, in which whoever has the GIL keeps it."""
        self._now_ns += ns

    def acquire(self) -> None:
        """Let the calling thread have the GIL from now on."""
        self._write_head(held_since_ns=self._now_ns, holder=threading.get_native_id())

    def release(self) -> None:
        """Let it have given the GIL up."""
        tid = threading.get_native_id()
        ns = self._now_ns - self._head["held_since_ns"]
        with self._lock:
            place, wait_ns, waits, held_ns = self._waits.get(tid, (0, 0, 0, 0))
            self._waits[tid] = place, wait_ns, waits, held_ns + ns
        self.write(tid, place, wait_ns, waits, held_ns + ns)
        self._write_head(holder=0)

    def leave_out(self) -> None:
        """Have no place for a wait."""
        self._write_head(unplaced=1)

    def _write_head(self, **fields: int) -> None:
        self._head.update(fields)
        os.pwrite(self._places, REGION_HEAD.layout().pack(self._head), 0)

    def close(self) -> None:
        """Give up the memory."""
        _agent.agent.reading = None
        for fd in (self._places, self._words):
            os.close(fd)


@pytest.fixture
def fake_agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAgent]:
    """An agent that the client reads from; it is not to be asked for when it has died."""
    monkeypatch.setenv("GILSCOPE_REGIONS", "/nowhere")
    _agent.forget()
    made = FakeAgent()
    monkeypatch.setattr(_agent, "monotonic_ns", made.now_ns)
    yield made
    made.close()
    _agent.forget()
