"""Sums in C that keep the GIL all the while."""


def summed(long steps):
    cdef long value = 0, step
    for step in range(steps):
        value = (value * 31 + step) % 9973
    return value
