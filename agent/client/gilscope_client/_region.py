"""A region of a program, and what it has waited."""

from gilscope_client import _agent

__all__ = ["region"]


class region(object):
    """What the calling thread waits inside of a block.

    ``wait_ns``: nanoseconds for which it waited for the GIL, ``waits``: how often, ``held_ns``:
    nanoseconds for which it held the GIL. None: not known, before the end of the block and where no
    agent tells. Regions may lie inside of each other, and each counts all of its own.
    """

    __slots__ = ("_place", "_start", "held_ns", "name", "wait_ns", "waits")

    def __init__(self, name=""):
        """Name it as you like."""
        self.name = name
        self.wait_ns = self.waits = self.held_ns = None
        self._place = self._start = None

    def __repr__(self):
        return "region(%r, wait_ns=%r, waits=%r)" % (self.name, self.wait_ns, self.waits)

    def __enter__(self):
        self.wait_ns = self.waits = None
        try:
            self._place = place = _agent.place_of_this_thread()
            self._start = None if place is None else (place.read(), place.at)
        except Exception:  # nothing that goes wrong here is the program's
            self._start = None
        return self

    def __exit__(self, kind, error, traceback):
        start, self._start = self._start, None
        if start is not None:
            try:
                self._end(*start)
            except Exception:
                self.wait_ns = self.waits = None
        return False

    def _end(self, sums, at):
        place = self._place
        if sums is None or place is not _agent.threads.place:
            return
        now = place.read()
        reading = place.reading
        # After the figures: what is true now was true then.
        if not reading.is_true():
            _agent.agent.give_up(reading)
            return
        if now is None or (not at and reading.unplaced()):
            return
        self.wait_ns = now[0] - sums[0]
        self.waits = now[1] - sums[1]
