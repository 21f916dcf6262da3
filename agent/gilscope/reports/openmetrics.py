"""Makes OpenMetrics text of a recording, with times, for ``promtool tsdb create-blocks-from``."""

from gilscope.collectors.recorded import encode_with_times
from gilscope.model import Recording

__all__ = ["render"]


def render(recording: Recording) -> str:
    """Return the figures of *recording* at its beginning, at each look at it, and at its end."""
    return encode_with_times(recording)
