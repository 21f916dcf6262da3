"""Makes Prometheus' text format of a recording, as ``/metrics`` has it, for what allows no times.

Those are node_exporter's textfile collector and the Pushgateway: both refuse timestamps.
"""

from gilscope.exporter.exposition import encode
from gilscope.exporter.recording import recorded_families
from gilscope.model.gil import Recording

__all__ = ["render"]


def render(*recordings: Recording) -> str:
    """Return the figures at the end of *recordings*."""
    return encode(recorded_families(recordings), "text/plain").decode()
