"""Takes messages of Protocol Buffers apart, as far as what processes publish needs that."""

from collections.abc import Iterator

from gilscope.process.remote_read import TornRead

__all__ = ["parts", "text"]

_VARINT, _FIXED_64, _LENGTH_DELIMITED, _FIXED_32 = 0, 1, 2, 5
_MORE = 0x80
_BITS = 7
_LONGEST_VARINT = 10
_TYPE_BITS = 3


def parts(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the fields of a message that are messages or text.

    Numbers among them are passed over. Raises TornRead where it is no message.
    """
    at = 0
    while at < len(content):
        tag, at = _varint(content, at)
        kind = tag & ((1 << _TYPE_BITS) - 1)
        if kind == _VARINT:
            _, at = _varint(content, at)
            continue
        if kind == _LENGTH_DELIMITED:
            size, at = _varint(content, at)
        elif kind in {_FIXED_64, _FIXED_32}:
            size = 8 if kind == _FIXED_64 else 4
        else:
            raise TornRead(f"a field of type {kind}")
        if at + size > len(content):
            raise TornRead(f"{size} bytes of {len(content) - at}")
        if kind == _LENGTH_DELIMITED:
            yield tag >> _TYPE_BITS, content[at : at + size]
        at += size


def text(content: bytes) -> str:
    """Return a field that is text; raises TornRead where it is none."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise TornRead("a text that is not in UTF-8") from error


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for position, byte in enumerate(content[at : at + _LONGEST_VARINT]):
        value |= (byte & (_MORE - 1)) << (_BITS * position)
        if not byte & _MORE:
            return value, at + position + 1
    raise TornRead("a number without an end")
