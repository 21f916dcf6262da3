"""Says which Python it is."""

__all__ = ["python_words"]


def python_words(version: str) -> str:
    """Return ``CPython 3.11.2``, or ``Python 3.9.16 (PyPy 7.3.11)``, for what a build says."""
    if version.startswith("PyPy"):
        return version
    return f"Python {version}" if "PyPy" in version else f"CPython {version}"
