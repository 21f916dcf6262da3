"""What a region of this program has waited for the GIL, as a running ``gilscope serve`` counts it.

::

    from gilscope_client import region

    with region("render") as r:
        ...
    print(r.wait_ns, r.waits)

Where no agent runs that traces this process and was started with ``--regions``, the figures are
None and nothing else happens. It is Python 2.7's syntax throughout: 3.8 and later are told figures.
"""

from gilscope_client._agent import connect
from gilscope_client._region import region

__all__ = ["connect", "region"]

__version__ = "0.2.0"
