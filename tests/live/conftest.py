"""What live tests share."""

from support.browser.browser import browser
from support.tracing.lock_waits import sleep_clock
from support.tracing.trace import probe, site_cache, tracer, trap_costs

__all__ = ["browser", "probe", "site_cache", "sleep_clock", "tracer", "trap_costs"]
