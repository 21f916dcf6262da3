"""Libraries and methods in words, and what is not seen."""

from collections.abc import Iterator

from gilscope.model.transactions import Library, Method, StmProcess

__all__ = ["LIBRARY_WORDS", "METHOD_WORDS", "limits_of"]

LIBRARY_WORDS = {
    Library.RPYTHON: "PyPy-STM or another RPython program",
    Library.LIBITM: "GCC's libitm",
}

METHOD_WORDS = {
    Method.EVENTS: "by every event that it logs",
    Method.EVENTS_BASIC: "by the events that it logs",
    Method.ENTRIES: "by the functions that it calls",
    Method.BEGINS: "by what begins them",
    Method.NAMES: "by the functions that have names",
    Method.RESTARTS: "by its functions and restarts",
}


def limits_of(process: StmProcess) -> Iterator[str]:
    """Yield what the method does not see, in sentences."""
    method = process.method
    if method is Method.ENTRIES:
        yield "The program does not log: waits, and the time of commits and aborts, are not seen."
        yield "A transaction counts when its thread begins the next one, or ends."
        yield "PYPYSTM=/dev/null shows more."
    elif method is Method.EVENTS_BASIC:
        yield "The version of the program is not known, so waits and conflicts are not seen."
        yield "The time of commits includes waits; that of aborts is not told."
    elif method is Method.BEGINS:
        yield "The program does not log, so aborts, waits and times are not seen."
        yield "A transaction counts when its thread begins the next one, or ends."
        yield "PYPYSTM=/dev/null shows more."
    elif method is Method.NAMES:
        yield "Restarts are not seen: this libitm does not show where they are."
    if process.library is Library.LIBITM:
        yield "The time of a transaction runs from begin to commit, with all of its restarts."
        yield "Hardware transactions cannot pass a probe: tracing makes them run in software."
