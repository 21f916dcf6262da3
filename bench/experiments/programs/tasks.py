"""The three tasks of ccbench: Python alone, C that keeps the GIL, C that releases it.

Sizes are ccbench's: 50 digits of pi, a regular expression over 2000 characters, bz2 of twice
3000 bytes. Each checks what it computes. Also for Python 2.7.
"""

import bz2
import re

DIGITS = 50
PI = "31415926535897932384626433832795028841971693993751"
TEXT = "".join("%d, %s; " % (number, "ab" * (number % 7)) for number in range(400))[:2000]
PATTERN = re.compile(r"(?:[a-z]+;?\s*)+?\d+(?=,)")
MATCHES = len(PATTERN.findall(TEXT))
BLOCK = bytes(bytearray(number * number % 251 for number in range(3000)))
PACKED = bz2.compress(BLOCK)


def pidigits():
    """Compute the digits of pi one by one, as an unbounded spigot does."""
    digits = []
    q, r, t, k, n, x = 1, 0, 1, 1, 3, 3
    while len(digits) < DIGITS:
        if 4 * q + r - t < n * t:
            digits.append(n)
            q, r, n = 10 * q, 10 * (r - n * t), (10 * (3 * q + r)) // t - 10 * n
        else:
            q, r, t, k, n, x = (
                q * k,
                (2 * q + r) * x,
                t * x,
                k + 1,
                (q * (7 * k + 2) + r * x) // (t * x),
                x + 2,
            )
    if "".join(map(str, digits)) != PI:
        raise SystemExit("these are not the digits of pi")


def regex():
    """Search a text: C code that never releases the GIL."""
    if len(PATTERN.findall(TEXT)) != MATCHES:
        raise SystemExit("other matches than before")


def bz2_task():
    """Compress twice: C code that releases the GIL."""
    for _ in range(2):
        if bz2.compress(BLOCK) != PACKED:
            raise SystemExit("other bytes than before")


TASKS = {"pidigits": pidigits, "regex": regex, "bz2": bz2_task}
