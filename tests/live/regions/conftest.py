"""What tests of regions share."""

from support.tracing.regions import region_probe, region_tracer
from support.tracing.trace import site_cache

__all__ = ["region_probe", "region_tracer", "site_cache"]
