"""What live tests share."""

from support.browser.browser import browser
from support.tracing.trace import probe, site_cache, tracer, trap_costs

__all__ = ["browser", "probe", "site_cache", "tracer", "trap_costs"]
