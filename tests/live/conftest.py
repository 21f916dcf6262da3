"""What live tests share."""

from tracing import probe, tracer, trap_costs

__all__ = ["probe", "tracer", "trap_costs"]
