"""What a thread waits from one moment to another, and the sum of several such stretches."""

from gilscope_client import _agent

__all__ = ["Sums", "begin", "waited"]


def begin():
    """Return what `waited` is to be given later, by the same thread, or None."""
    try:
        place = _agent.place_of_this_thread()
        sums = None if place is None else place.read()
    except Exception:  # nothing that goes wrong here is the program's
        return None
    return None if sums is None else (place, place.at, sums)


def waited(began):
    """Return nanoseconds and number of the waits since *began*, or None where not known."""
    try:
        return None if began is None else _waited(*began)
    except Exception:
        return None


def _waited(place, at, before):
    if place is not _agent.threads.place:
        return None  # another thread, or this one reads elsewhere by now
    now = place.read()
    reading = place.reading
    # After the figures: what is whole now was whole then.
    if not reading.is_true():
        _agent.agent.give_up(reading)
        return None
    if now is None or (not at and reading.unplaced()):
        return None
    return now[0] - before[0], now[1] - before[1]


class Sums(object):
    """Waits of several stretches, not known as a whole where one of them is not."""

    __slots__ = ("_began", "is_known", "wait_ns", "waits")

    def __init__(self):
        self.is_known = True
        self.wait_ns = self.waits = 0
        self._began = None

    def add(self, figures):
        """Add what `waited` has returned."""
        if figures is None:
            self.is_known = False
        else:
            self.wait_ns += figures[0]
            self.waits += figures[1]

    def call(self, function, *arguments):
        """Return what *function* does, with what it has waited added."""
        self._began = began = begin()
        try:
            return function(*arguments)
        finally:
            self._began = None
            self.add(waited(began))

    def so_far(self):
        """Return them, with those of the call that goes on."""
        sums = Sums()
        sums.is_known = self.is_known
        sums.add((self.wait_ns, self.waits))
        sums.add(waited(self._began))
        return sums
