"""What a thread waits from one moment to another, and the sum of several such stretches."""

from gilscope_client import _agent

__all__ = ["Sums", "begin", "waited"]


_record = _agent.PLACE.unpack_from


def begin():
    """Return what `waited` is to be given later, by the same thread, or None."""
    try:
        place = _agent.threads.place
        if place is None or place.reading is not _agent.agent.reading:
            place = _agent.place_of_this_thread()
            if place is None:
                return None
        if place.at:
            return place, _record(place.memory, place.at)
        record = place.first_record()
    except Exception:  # nothing that goes wrong here is the program's
        return None
    return None if record is None else (place, record)


def waited(began):
    """Return nanoseconds and number of the waits since *began*, or None where not known."""
    if began is None:
        return None
    try:
        place, before = began
        if place is not _agent.threads.place:
            return None  # another thread, or this one reads elsewhere by now
        now = _record(place.memory, place.at) if place.at else place.first_record()
        reading = place.reading
        # After the figures: what is whole now was whole then.
        if reading.read_words(reading.words, reading.words_at) != reading.expected:
            _agent.agent.give_up(reading)
            return None
        return None if now is None else _difference(reading, before, now)
    except Exception:
        return None


def _difference(reading, before, now):
    end, _, wait_ns, waits, begin = now
    # A thread writes its record and reads it; only without a GIL could that be torn.
    if end != begin or before[0] != before[4]:
        return None
    if not before[1] and reading.unplaced():
        return None  # a wait may have had no place, before there was one
    return wait_ns - before[2], waits - before[3]


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
