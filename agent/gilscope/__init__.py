"""gilscope: which threads wait for the GIL, how long, and after what."""

__home__ = "https://github.com/gilscope/gilscope"
__version__ = "0.2.0"
