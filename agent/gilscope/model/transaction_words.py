"""Libraries and methods in words."""

from gilscope.model.transactions import Library, Method

__all__ = ["LIBRARY_WORDS", "METHOD_WORDS"]

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
