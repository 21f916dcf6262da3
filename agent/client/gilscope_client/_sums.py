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
        clock, record = place.clock, place.record
        now_ns = None if clock is None else clock()
        now = place.first_record() if record is None else record()
    except Exception:  # nothing that goes wrong here is the program's
        return None
    return None if now is None else (place, now_ns, now)


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
        clock, record = place.clock, place.record
        now_ns = None if clock is None else clock()
        now = place.first_record() if record is None else record()
        # After the figures: what is whole now was whole then.
        if place.words() != place.expected:
            agent.give_up(place.reading)
            now = None
        if now is None:
            return None
        held_ns = None
        if clock is not None:
            held_ns = held(place.tid, (began_ns, before), (now_ns, now))
            before, now = (each[2:5] + each[6:] for each in (before, now))
        begun, wait_ns, waits, ended = before
        # A thread writes its record and reads it; only without a GIL could that be torn. And a wait
        # may have had no place, before there was one.
        if begun != ended or now[0] != now[3] or (not begun and place.reading.unplaced()):
            return None
        return now[1] - wait_ns, now[2] - waits, held_ns
    except Exception:
        return None


def held(tid, began, ended):
    """Return for how many nanoseconds thread *tid* held the GIL between the two, None: not known.

    Each is a time and what was read just after it.
    """
    (began_ns, before), (ended_ns, after) = began, ended
    # It is not told of the lock of another interpreter, nor of a hold that began unseen.
    if before[1] != tid or after[1] != tid:
        return None
    before_ns, after_ns = began_ns - before[0], ended_ns - after[0]
    held_ns = after[5] + after_ns - before[5] - before_ns
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
