"""gilscope: who waits for the GIL, for how long, and because of whom."""

__version__ = "0.1.0"
