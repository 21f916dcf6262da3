"""Asks the agent for memory in which this process reads its own waits and holds, and reads it.

The agent's probes write there at the end of each wait of a thread, in the thread itself: what it
reads of itself is never older than its last wait. Reading takes no system call.

In full mode they write at each acquisition and release, too. Who reads holds the GIL, so what is
in the head is the time since which this very thread has it, unless that was not seen.
"""

import array
import functools
import mmap
import os
import socket
import struct
import threading
import time

__all__ = ["connect", "place_of_this_thread"]

DEFAULT_PATH = "/run/gilscope/regions.sock"
VARIABLE = "GILSCOPE_REGIONS"

# The answer, as gilscope.regions.protocol has it.
MAGIC = b"gilscop2"
ANSWER = struct.Struct("=8sIIIIIIQ")
GIVEN = 0

# struct region_place and region_head, as gilscope.gil.abi has them.
PLACES = 1024
TRIES = 8
PLACE_SIZE = 64
HEAD = "24xQI"
HEAD_SIZE = 36
# Who reads a place pays for each number: these are version, wait_ns, waits and version again.
PLACE = "Q8xQQ8xQ"
PLACE_WITH_HELD = "Q8xQQQQ"
# A place has been written at least once.
NO_PLACE = (0, 0, 0, 0)
NO_PLACE_WITH_HELD = (0, 0, 0, 0, 0)
TIDS = struct.Struct("=" + "8xI52x" * TRIES)
UNPLACED = struct.Struct("=16xQ")
TELLS_HOLDS = struct.Struct("=36xI")
HOLDER = struct.Struct("=" + HEAD)

# A Python without it has no figures. It is that by which the kernel's probes tell the time.
monotonic_ns = getattr(time, "monotonic_ns", None)

AGAIN_S = 1.0
"""Between two times of asking: it takes some system calls."""


class Reading(object):
    """The memory, once it is there. It is given up as a whole, never changed."""

    __slots__ = ("expected", "places", "tells_holds", "words")

    def __init__(self, places, words, agent, state):
        """Map the two descriptors. *agent* and *state* are place and value of the two words."""
        self.places = mmap.mmap(places, PLACES * PLACE_SIZE, mmap.MAP_SHARED, mmap.PROT_READ)
        self.tells_holds = bool(TELLS_HOLDS.unpack_from(self.places, 0)[0])
        memory = mmap.mmap(words, os.fstat(words).st_size, mmap.MAP_SHARED, mmap.PROT_READ)
        # One call reads both. It returns `expected` as long as nothing that this process waits is
        # missing in its places, and never again after that.
        both = struct.Struct("=I%dxQ" % (state[0] - agent[0] - 4))
        self.words = functools.partial(both.unpack_from, memory, agent[0])
        self.expected = (agent[1], state[1])

    def unplaced(self):
        """Return how many waits were of threads for which there was no place."""
        return UNPLACED.unpack_from(self.places, 0)[0]


class Place(object):
    """Where one thread reads what it has waited and held."""

    __slots__ = ("_home", "clock", "expected", "reading", "record", "tid", "words")

    def __init__(self, reading, tid):
        """Begin to read as thread *tid*, the calling one."""
        self.reading = reading
        self.words = reading.words
        self.expected = reading.expected
        self.record = None
        """Returns the members of PLACE, or where there is a clock those of HEAD and of
        PLACE_WITH_HELD; None: the agent has not seen the thread wait."""
        self.tid = tid
        self.clock = monotonic_ns if reading.tells_holds else None
        """To be read before the record: where the thread has acquired the GIL later than that, it
        has given it up between the two. None: the agent does not tell holds."""
        self._home = (1 + tid % (PLACES - TRIES)) * PLACE_SIZE

    def first_record(self):
        """Return what *record* will, before there is one; None: unknown."""
        memory = self.reading.places
        tids = TIDS.unpack_from(memory, self._home)
        if self.tid in tids:
            at = self._home + tids.index(self.tid) * PLACE_SIZE
            form = "=%dx%s" % (at, PLACE)
            if self.clock is not None:
                # One call reads both.
                form = "=%s%dx%s" % (HEAD, at - HEAD_SIZE, PLACE_WITH_HELD)
            self.record = functools.partial(struct.Struct(form).unpack_from, memory)
            return self.record()
        if self.reading.unplaced():
            return None  # it may have waited without a place
        if self.clock is None:
            return NO_PLACE
        return HOLDER.unpack_from(memory) + NO_PLACE_WITH_HELD


class Agent(object):
    """What is known of the agent: nothing, or a Reading."""

    def __init__(self):
        self.reading = None
        self._lock = threading.Lock()
        self._asked_s = None
        self._connection = None

    def current(self):
        """Return a Reading, or None; asks for one if that is due, and waits for nothing."""
        reading = self.reading
        if reading is not None:
            return reading
        is_idle = self._asked_s is not None and self._connection is None
        if is_idle and time.monotonic() - self._asked_s < AGAIN_S:
            return None
        if not self._lock.acquire(False):  # noqa: FBT003 - a keyword is unknown to 2.7
            return None  # another thread asks
        try:
            self._ask(0)
        except Exception:  # nothing that goes wrong here is the program's
            self._hang_up()
        finally:
            self._lock.release()
        return self.reading

    def connect(self, timeout_s):
        """Return whether there is a Reading, within *timeout_s*."""
        until_s = time.monotonic() + timeout_s
        while self.reading is None:
            with self._lock:
                try:
                    self._ask(max(0, until_s - time.monotonic()))
                except Exception:
                    self._hang_up()
            left_s = until_s - time.monotonic()
            if self.reading is not None or left_s <= 0:
                break
            time.sleep(min(0.02, left_s))
        return self.reading is not None

    def give_up(self, reading):
        """Read *reading* no more: the agent has died, or does not trace this process any more."""
        threads.place = None
        with self._lock:
            if self.reading is reading:
                self.reading = None
                self._asked_s = time.monotonic()

    def _ask(self, timeout_s):
        if self.reading is not None:
            return
        if self._connection is None:
            self._asked_s = time.monotonic()
            self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._connection.settimeout(timeout_s)
            self._connection.connect(os.environ.get(VARIABLE) or DEFAULT_PATH)
        self._connection.settimeout(timeout_s)
        descriptors = array.array("i")
        room = socket.CMSG_SPACE(2 * descriptors.itemsize)
        try:
            answer, others, _, _ = self._connection.recvmsg(ANSWER.size, room)
        except (BlockingIOError, socket.timeout):
            return  # it comes later
        for level, kind, content in others:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors.frombytes(content[: len(content) // 4 * 4])
        try:
            self.reading = reading_of(answer, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
            self._hang_up()

    def _hang_up(self):
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def reading_of(answer, descriptors):
    """Return what the agent has given, or None."""
    magic, word, _, agent_at, agent, state_at, _, state = ANSWER.unpack(answer)
    if magic != MAGIC or word != GIVEN:
        return None
    places, words = descriptors
    return Reading(places, words, (agent_at, agent), (state_at, state))


class NoAgent(object):
    """On a Python that lacks what it takes."""

    reading = None

    def current(self):
        return None

    def connect(self, _timeout_s):
        return False

    def give_up(self, reading):
        pass


class Threads(threading.local):
    """What this thread reads."""

    place = None
    tid = 0


CAN_ASK = (
    hasattr(os, "register_at_fork")
    and hasattr(socket, "CMSG_SPACE")
    and hasattr(threading, "get_native_id")
)

agent = Agent() if CAN_ASK else NoAgent()
threads = Threads()


def place_of_this_thread():
    """Return where the calling thread reads its waits, or None; see Place."""
    place = threads.place
    if place is not None:
        return place
    reading = agent.current()
    if reading is None:
        return None
    if not threads.tid:
        threads.tid = threading.get_native_id()
    threads.place = place = Place(reading, threads.tid)
    return place


def connect(timeout_s=1.0):
    """Wait until the agent gives figures, *timeout_s* at the most, and return whether it does.

    Nobody has to call it: a region asks by itself and waits for nothing, so the first may have
    none. A process that the agent has only just found is told after some tenths of a second.
    """
    return agent.connect(timeout_s)


def forget():
    """Know nothing of the agent.

    A child has its parent's memory mapped, which says nothing of the child: it asks for its own.
    """
    agent.__init__()
    threads.place = None
    threads.tid = 0


if CAN_ASK:
    os.register_at_fork(after_in_child=forget)
