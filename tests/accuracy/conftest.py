"""What the accuracy tests share."""

from tracing import probe, tracer

__all__ = ["probe", "tracer"]
