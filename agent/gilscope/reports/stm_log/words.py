"""What the reports on STM logs call things, and how they write figures."""

from gilscope.model.stm_log import Gap, LogFile, StmLog
from gilscope.stm_log.markers import describe
from gilscope.stm_log.sums import Place
from gilscope.text.printable import printable
from gilscope.text.units import counted

__all__ = ["headline", "kind_name", "meaning_of", "old_percent", "place_words", "warnings_of"]

_C7_LAYOUTS = {"L7", "L7a"}
_MEANINGS_IN_C7 = {
    "STM_CONTENTION_WRITE_WRITE": (
        "both had written to the same object; first where this transaction was, then where the "
        "other one had written"
    ),
    "STM_CONTENTION_WRITE_READ": (
        "another transaction had read what this one had written at the position"
    ),
    "STM_CONTENTION_INEVITABLE": (
        "both had to become inevitable; first where this transaction was, then where the other one "
        "had become so"
    ),
}
_MEANINGS = {
    "STM_CONTENTION_WRITE_READ": (
        "what this transaction had read was changed by another one, at the position or shortly "
        "after it"
    ),
    "STM_BECOME_INEVITABLE": (
        "it had to become inevitable at the position, and waited for another one that was so"
    ),
    "STM_TRANSACTION_REATTACH": (
        "it came back from outside, and waited for another one that was inevitable"
    ),
}
_SHORT = 3
_REST = "(all places that there was no room to tell apart)"


def kind_name(kind: str) -> str:
    """Return the name of an event without its prefix, in small letters and with blanks."""
    return kind.removeprefix("STM_").replace("_", " ").lower()


def meaning_of(kind: str, layout: str) -> str:
    """Return in words what a conflict of *kind* is in a log of *layout*; empty if unknown."""
    if layout in _C7_LAYOUTS:
        return _MEANINGS_IN_C7.get(kind, "")
    return _MEANINGS.get(kind, "")


def place_words(place: Place) -> list[str]:
    """Return the lines that stand for *place*, one for each position."""
    _, markers, is_rest = place
    return [_REST] if is_rest else [printable(describe(each)) for each in markers or ("",)]


def old_percent(part: float, whole: float) -> str:
    """Return what *part* is of *whole* as the original writes it: ``9.9%``, `` 28%``, ``153%``."""
    text = f"{100 * part / whole:.1f}" if whole else "0.0"
    if len(text) > _SHORT:
        text = text.partition(".")[0]
    return f"{text:>3}%"


def headline(log: StmLog) -> str:
    """Return what kind of log it is, and how much is in it."""
    generation = "C7" if log.layout in _C7_LAYOUTS else "C8"
    figures = "as the original tool has it" if log.is_original else "corrected"
    if log.semantics == "S0":
        figures = "as in 2014, pauses included"
    return (
        f"Log of PyPy-STM {generation} (layout {log.layout}, events {log.events_table}), "
        f"{log.records} records of {log.threads} threads. Accounting {log.semantics}, {figures}."
    )


def warnings_of(file: LogFile) -> list[str]:
    """Return what is wrong with the file, in words."""
    found = [
        f"{file.name}: {_gap_words(log.gap)} From byte {log.offset} on it is another log, which "
        "is reported by itself."
        for log in file.logs
        if log.gap is not None
    ]
    if file.trailing_gap is not None and file.trailing_gap.size:
        found.append(f"{file.name}: {_gap_words(file.trailing_gap)} Nothing follows that is a log.")
    if file.cut_tail_bytes:
        found.append(
            f"{file.name}: it ends in the middle of a record ({file.cut_tail_bytes} bytes of it): "
            "the process was killed, or has not written the rest yet."
        )
    for log in file.logs:
        unknown = sum(
            count for name, count in log.counts.items() if name.startswith("STM_UNKNOWN_EVENT")
        )
        if unknown:
            found.append(
                f"{file.name}: {_records(unknown)} with event numbers that the table "
                f"{log.events_table} does not have, counted and of no effect."
            )
        if log.backward_timestamps:
            found.append(
                f"{file.name}: the clock goes back at {_records(log.backward_timestamps)}; no "
                "duration is taken for less than 0."
            )
    return found


def _records(number: int) -> str:
    return counted(number, "record")


def _gap_words(gap: Gap) -> str:
    if not gap.size:
        return f"at byte {gap.offset} the clock goes back: a second process has written to it."
    nul = f", {gap.nul_bytes} of them NUL" if gap.nul_bytes else ""
    return (
        f"{gap.size} bytes from byte {gap.offset} on are no records{nul}: a second process has "
        "written to it, or it is damaged."
    )
