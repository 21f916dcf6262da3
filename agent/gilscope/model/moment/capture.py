"""A dump that was taken because a wait passed a limit, as it is kept for who asks."""

from gilscope.values import dataclass

__all__ = ["Capture"]


@dataclass(frozen=True, slots=True)
class Capture:
    """One of the last captures. Its reports are compressed: there may be megabytes of them."""

    number: int
    """Counted since the agent began."""
    at_ns: int
    """Since 1970."""
    pid: int
    process: str
    verdict: tuple[str, ...]
    text: bytes
    json: bytes
