"""What tests of programs and maps share with other live tests."""

from support.tracing.trace import probe, tracer, trap_costs

__all__ = ["probe", "tracer", "trap_costs"]
