"""What a process that asks for its own waits is answered; `gilscope_client` knows the same.

The answer is one message, and comes with two descriptors where something is given: of the places of
the process' threads (see ``struct region_place`` of the probes), and of the words that say whether
these are still written (see `words`). Both can be mapped for reading, and for nothing else.
"""

import struct
from enum import IntEnum

from gilscope.values import dataclass

__all__ = ["ANSWER_SIZE", "Answer", "Word"]

_MAGIC = b"gilscop2"
_ANSWER = struct.Struct("=8sIIIIIIQ")
ANSWER_SIZE = _ANSWER.size


class Word(IntEnum):
    """What the agent says to who asks."""

    GIVEN = 0
    NOT_TRACED = 1
    """It may be later."""
    REFUSED = 2
    """Who asks cannot be told for certain, or is not who it was."""
    NO_ROOM = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. All but the first is 0 where nothing is given."""

    word: Word
    words_size: int = 0
    """Bytes of what the second descriptor is of."""
    agent_at: int = 0
    """Where, in bytes, the number is that the kernel changes when the agent dies (32 bits),"""
    agent: int = 0
    """and what it is until then."""
    state_at: int = 0
    """Where the number is that changes when this process is not traced any more (64 bits),"""
    state: int = 0
    """and what it is until then."""

    def pack(self) -> bytes:
        """Return the bytes of the message."""
        return _ANSWER.pack(
            _MAGIC,
            self.word,
            self.words_size,
            self.agent_at,
            self.agent,
            self.state_at,
            0,
            self.state,
        )
