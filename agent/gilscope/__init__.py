"""gilscope: which threads wait for the GIL, how long, and after what."""

__version__ = "0.1.0"
