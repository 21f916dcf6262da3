"""What live tests share."""

from live.browser import browser
from tracing import probe, tracer, trap_costs

__all__ = ["browser", "probe", "tracer", "trap_costs"]
