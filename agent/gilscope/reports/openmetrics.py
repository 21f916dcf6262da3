"""Makes OpenMetrics text of a recording, with times, for ``promtool tsdb create-blocks-from``."""

from gilscope.collectors.recorded import encode_with_times, recorded_families
from gilscope.model import Recording

__all__ = ["render"]


def render(recording: Recording) -> str:
    """Return the figures at the beginning and at the end of *recording*."""
    return encode_with_times(recorded_families(recording), recording)
