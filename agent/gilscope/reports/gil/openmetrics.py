"""Makes OpenMetrics text of a recording, with times, for ``promtool tsdb create-blocks-from``."""

from gilscope.exporter.recording import encode_with_times
from gilscope.model.gil import Recording

__all__ = ["render"]


def render(recording: Recording) -> str:
    """Return the figures of *recording* at its beginning, at each snapshot, and at its end."""
    return encode_with_times(recording)
