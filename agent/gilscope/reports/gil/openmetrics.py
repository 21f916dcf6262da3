"""Makes OpenMetrics text of a recording, with times, for ``promtool tsdb create-blocks-from``."""

from gilscope.exporter.recording import encode_with_times
from gilscope.model.gil import Recording

__all__ = ["render"]


def render(*recordings: Recording) -> str:
    """Return the figures of *recordings* at their beginnings, at each snapshot, and at the end."""
    return encode_with_times(recordings)
