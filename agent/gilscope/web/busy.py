"""What is said where nobody can be told at the moment whether they may read."""

__all__ = ["Busy"]


class Busy(Exception):
    """Too many others are being looked at; who asks again in a second may be told."""
