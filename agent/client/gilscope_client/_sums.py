"""What a thread waits and holds between two moments, and the sum of several such stretches."""

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
        now_ns = place.clock()
        if place.record is not None:
            return place, now_ns, place.record()
        record = place.first_record()
    except Exception:  # nothing that goes wrong here is the program's
        return None
    return None if record is None else (place, now_ns, record)


def waited(began):
    """Return what is known since *began*, or None.

    That is nanoseconds and number of the waits, and nanoseconds of holding the GIL, which are None
    where they alone are not known.
    """
    if began is None:
        return None
    try:
        place, began_ns, before = began
        if place is not threads.place:
            return None  # another thread, or this one reads elsewhere by now
        now_ns = place.clock()
        now = place.first_record() if place.record is None else place.record()
        reading = place.reading
        # After the figures: what is whole now was whole then.
        if reading.words() != reading.expected:
            agent.give_up(reading)
            return None
        # A thread writes its record and reads it; only without a GIL could that be torn.
        is_torn = now is None or before[2] != before[7] or now[2] != now[7]
        # A wait may have had no place, before there was one.
        if is_torn or (not before[3] and reading.unplaced()):
            return None
        held_ns = held(place, (began_ns, before), (now_ns, now)) if reading.tells_holds else None
        return now[4] - before[4], now[5] - before[5], held_ns
    except Exception:
        return None


def held(place, began, ended):
    """Return for how many nanoseconds the thread held the GIL between the two, None: not known.

    Each is a time and what was read just after it.
    """
    (began_ns, before), (ended_ns, after) = began, ended
    tid = place.tid
    # It is not told of the lock of another interpreter, nor of a hold that began unseen.
    if before[1] != tid or after[1] != tid:
        return None
    before_ns, after_ns = began_ns - before[0], ended_ns - after[0]
    held_ns = after[6] + after_ns - before[6] - before_ns
    # Below zero: the GIL was given up between reading the time and the rest. And a program whose
    # clock is not the kernel's must not be told anything.
    if before_ns < 0 or after_ns < 0 or not 0 <= held_ns <= ended_ns - began_ns:
        return None
    return held_ns


class Sums(object):
    """Waits of several stretches, not known as a whole where one of them is not."""

    __slots__ = ("_began", "held_ns", "is_known", "wait_ns", "waits")

    def __init__(self):
        self.is_known = True
        self.wait_ns = self.waits = self.held_ns = 0
        self._began = None

    def add(self, figures):
        """Add what `waited` has returned."""
        if figures is None:
            self.is_known = False
        else:
            self.wait_ns += figures[0]
            self.waits += figures[1]
            is_held_known = self.held_ns is not None and figures[2] is not None
            self.held_ns = self.held_ns + figures[2] if is_held_known else None

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
        sums.add((self.wait_ns, self.waits, self.held_ns))
        sums.add(waited(self._began))
        return sums
