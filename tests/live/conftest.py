"""What live tests share."""

from support.browser.browser import browser
from support.tracing.trace import probe, tracer, trap_costs

__all__ = ["browser", "probe", "tracer", "trap_costs"]
