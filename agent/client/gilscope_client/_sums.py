"""What a thread waits from one moment to another, and the sum of several such stretches."""

from gilscope_client._agent import agent, place_of_this_thread, threads

__all__ = ["Sums", "begin", "waited"]


def begin():
    """Return what `waited` is to be given later, by the same thread, or None."""
    try:
        place = threads.place
        if place is None:
            place = place_of_this_thread()
            if place is None:
                return None
        if place.record is not None:
            return place, place.record()
        record = place.first_record()
    except Exception:  # nothing that goes wrong here is the program's
        return None
    return None if record is None else (place, record)


def waited(began):
    """Return nanoseconds and number of the waits since *began*, or None where not known."""
    if began is None:
        return None
    try:
        place, (begun, tid, wait_ns, waits, ended) = began
        if place is not threads.place:
            return None  # another thread, or this one reads elsewhere by now
        now = place.first_record() if place.record is None else place.record()
        reading = place.reading
        # After the figures: what is whole now was whole then.
        if reading.words() != reading.expected:
            agent.give_up(reading)
            return None
        # A thread writes its record and reads it; only without a GIL could that be torn.
        is_torn = now is None or begun != ended or now[0] != now[4]
        # A wait may have had no place, before there was one.
        if is_torn or (not tid and reading.unplaced()):
            return None
        return now[2] - wait_ns, now[3] - waits
    except Exception:
        return None


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
