"""The five entries printed in two texts of November 2014, and logs that are made to give them."""

from dataclasses import dataclass

from support.stm_log.writer import US, LogWriter

__all__ = ["GOLDEN_ENTRIES", "GoldenEntry"]

_TORNADO = "/home/ubuntu/tornado-stm/tornado/tornado"
_TRANSACTION = 'File "/home/ubuntu/pypy/lib_pypy/transaction.py", line 164, in _run_thread'
_PAUSE_NS = 50 * US


@dataclass(frozen=True, slots=True)
class GoldenEntry:
    """One entry, as it was printed."""

    lost_ns: int
    count: int
    kind: str
    """The event's name, without prefix."""
    markers: tuple[str, ...]

    @property
    def text(self) -> str:
        """The entry as the tool prints it where the source is not there."""
        head = (
            f"{self.lost_ns / 1e9:.3f}s lost in aborts, 0.000s paused "
            f"({self.count}x STM_CONTENTION_{self.kind})"
        )
        return "\n".join([head, *(f"  {marker}" for marker in self.markers)])

    def log(self) -> bytes:
        """Return a log with as many conflicts, and transactions that lost as much together.

        Each of them waits in between: the tool of that time took that for lost as well.
        """
        writer = LogWriter("L7")
        event = "CONTENTION_INEVITABLE" if self.kind == "INEVITABLE" else self.kind
        first, second = (*self.markers, "")[:2]
        now_ns = 0
        for number in range(self.count):
            writer.add(now_ns, 2, "START")
            writer.add(now_ns + _PAUSE_NS, 2, "WAIT_SYNC_PAUSE")
            writer.add(now_ns + 2 * _PAUSE_NS, 2, "WAIT_DONE")
            now_ns = self.lost_ns * (number + 1) // self.count
            writer.add(now_ns, 2, event, first, second, other=1).add(now_ns, 2, "ABORT")
        return writer.content


def _twice(marker: str) -> tuple[str, str]:
    return marker, marker


GOLDEN_ENTRIES = (
    GoldenEntry(
        14_793_000_000,
        1258,
        "INEVITABLE",
        _twice(f'File "{_TORNADO}/httpserver.py", line 455, in __init__'),
    ),
    GoldenEntry(
        14_153_000_000,
        270,
        "INEVITABLE",
        _twice(f'File "{_TORNADO}/web.py", line 1082, in compute_etag'),
    ),
    GoldenEntry(13_484_000_000, 130, "WRITE_READ", (_TRANSACTION,)),
    GoldenEntry(
        83_066_000_000,
        459,
        "WRITE_WRITE",
        _twice(
            'File "/home/arigo/hg/pypy/stmgc-c7/lib-python/2.7/_weakrefset.py", line 70, '
            "in __contains__"
        ),
    ),
    GoldenEntry(91_655_000_000, 249, "WRITE_READ", (_TRANSACTION,)),
)
