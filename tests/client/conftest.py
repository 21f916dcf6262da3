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
    """Writes what the probes write."""

    def __init__(self) -> None:
        self._places, self._words = (os.memfd_create(name) for name in ("places", "words"))
        os.ftruncate(self._places, REGION_PLACES * REGION_PLACE.layout().size)
        os.ftruncate(self._words, mmap.PAGESIZE)
        self._lock = threading.Lock()
        self._waits: dict[int, tuple[int, int, int]] = {}
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
            place, wait_ns, waits = self._waits.get(tid, (at, 0, 0))
            self._waits[tid] = place, wait_ns + ns, waits + 1
        self.write(tid, place, wait_ns + ns, waits + 1)

    def write(self, tid: int, place: int, wait_ns: int, waits: int) -> None:
        """Write one place, of those that thread *tid* may have."""
        record = {"tid": tid, "owner": tid, "wait_ns": wait_ns, "waits": waits}
        layout = REGION_PLACE.layout()
        number = 1 + tid % (REGION_PLACES - REGION_TRIES) + place
        os.pwrite(self._places, layout.pack(record), number * layout.size)

    def leave_out(self) -> None:
        """Have no place for a wait."""
        os.pwrite(self._places, REGION_HEAD.layout().pack({"unplaced": 1}), 0)

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
    yield made
    made.close()
    _agent.forget()
