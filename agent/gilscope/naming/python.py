"""Says which Python it is."""

__all__ = ["python_words"]


def python_words(version: str, *, tells_gil: bool = True) -> str:
    """Return ``CPython 3.11.2``, or ``Python 3.9.16 (PyPy 7.3.11)``, for what a build says.

    A free-threaded one is traced while it has its GIL, which is said too if it *tells_gil*.
    """
    if version.startswith("PyPy"):
        return version
    if version.endswith("t") and tells_gil:
        return f"CPython {version}, free-threaded with its GIL on"
    return f"Python {version}" if "PyPy" in version else f"CPython {version}"
