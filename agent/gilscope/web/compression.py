"""Makes answers small for clients that can read them so, as Prometheus can."""

import zlib
from typing import Final

from gilscope.web.listener import Answer

__all__ = ["compressed", "takes_gzip"]

_GZIP: Final = 16 + zlib.MAX_WBITS
"""In the form of gzip, which zlib knows by this number."""
_LEVEL: Final = 1
"""The quickest: lines of metrics are so much alike that it makes a twentieth of them."""


def takes_gzip(accept_encoding: str) -> bool:
    """Return whether a client with this Accept-Encoding header wants gzip, or whatever there is."""
    qualities: dict[str, float] = {}
    for each in accept_encoding.lower().split(","):
        name, *parameters = (part.strip() for part in each.split(";"))
        given = dict(part.partition("=")[::2] for part in parameters)
        try:
            qualities[name] = float(given.get("q", 1))
        except ValueError:
            continue
    return qualities.get("gzip", qualities.get("*", 0)) > 0


def compressed(answer: Answer, accept_encoding: str) -> Answer:
    """Return *answer* compressed if a client with this Accept-Encoding header takes it so."""
    status, headers, body = answer
    # What is in between, and keeps answers, must not give one client what another can read.
    headers = {**headers, "Vary": "Accept-Encoding"}
    if not takes_gzip(accept_encoding):
        return status, headers, body
    packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
    return status, {**headers, "Content-Encoding": "gzip"}, packer.compress(body) + packer.flush()
