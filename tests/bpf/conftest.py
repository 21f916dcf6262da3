"""What tests of programs and maps share with other live tests."""

from support.tracing.trace import probe, site_cache, tracer, trap_costs

__all__ = ["probe", "site_cache", "tracer", "trap_costs"]
