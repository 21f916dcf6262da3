"""What the client knows of the agent's numbers is what the agent means."""

import struct

from gilscope.gil import abi
from gilscope.regions.protocol import Answer, Word
from gilscope_client import _agent as client

PLACE = {
    "version_end": 1,
    "tid": 2,
    "owner": 3,
    "wait_ns": 4,
    "waits": 5,
    "held_ns": 6,
    "version_begin": 7,
}
HEAD = {"unplaced": 7, "held_since_ns": 8, "holder": 9, "tells_holds": 1}


def test_the_client_reads_a_place_as_the_probes_write_it() -> None:
    """
    Version, sums, version again, with what was held or without.
    """
    place = abi.REGION_PLACE.layout().pack(PLACE)

    assert len(place) == client.PLACE_SIZE
    assert (1, 4, 5, 7) == struct.unpack_from(f"={client.PLACE}", place)
    assert (1, 4, 5, 6, 7) == struct.unpack_from(f"={client.PLACE_WITH_HELD}", place)


def test_the_client_knows_how_many_places_there_are() -> None:
    """
    And among which a thread's is.
    """
    places = [abi.REGION_PLACE.layout().pack({"tid": tid}) for tid in range(abi.REGION_TRIES)]

    assert (abi.REGION_PLACES, abi.REGION_TRIES) == (client.PLACES, client.TRIES)
    assert tuple(range(abi.REGION_TRIES)) == client.TIDS.unpack_from(b"".join(places))


def test_the_client_reads_the_head() -> None:
    """
    Whether any had no place, and since when who holds the GIL, if that is told at all.
    """
    head = abi.REGION_HEAD.layout().pack(HEAD)

    assert len(head) == client.PLACE_SIZE
    assert (7,) == client.UNPLACED.unpack_from(head)
    assert (8, 9) == client.HOLDER.unpack_from(head)
    assert client.HEAD_SIZE == client.HOLDER.size
    assert (1,) == client.TELLS_HOLDS.unpack_from(head)


def test_the_client_understands_the_answer() -> None:
    """
    All members in their order; the size of the words is asked of the file itself.
    """
    answer = Answer(Word.GIVEN, words_size=1, agent_at=2, agent=3, state_at=4, state=5)

    assert (b"gilscop2", 0, 1, 2, 3, 4, 0, 5) == client.ANSWER.unpack(answer.pack())
    assert client.GIVEN == Word.GIVEN


def test_what_is_not_given_is_not_read() -> None:
    """
    Nor is what another program answers.
    """
    other = struct.pack("=8sIIIIIIQ", b"another.", 0, 1, 2, 3, 4, 0, 5)

    assert client.reading_of(Answer(Word.NOT_TRACED).pack(), ()) is None
    assert client.reading_of(other, ()) is None
