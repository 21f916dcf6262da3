"""Reads logs for tests, and puts what is in them into few words."""

from gilscope.model.stm_log import LogFile, LogGroup, StmLog, StmReport
from gilscope.stm_log.merge import merge
from gilscope.stm_log.reader import LogReader, Reading

__all__ = ["charges", "file_of", "log_of", "original_log", "report_of"]


def file_of(content: bytes, reading: Reading | None = None, name: str = "app.log") -> LogFile:
    """Return what is in *content*."""
    reader = LogReader(name, reading)
    reader.feed(content)
    reader.finish()
    return reader.snapshot()


def log_of(content: bytes, semantics: str | None = None) -> StmLog:
    """Return the only log in *content*, with gilscope's own figures."""
    (log,) = file_of(content, Reading(semantics=semantics)).logs
    return log


def original_log(content: bytes, semantics: str | None = None) -> StmLog:
    """Return the only log in *content*, with the figures of the original tool."""
    reading = Reading(semantics=semantics, is_original=True)
    (log,) = file_of(content, reading).logs
    reader = LogReader("app.log", reading, [log])
    reader.feed(content)
    reader.finish()
    return reader.snapshot().logs[0]


def charges(log: StmLog) -> dict[str, tuple[int, int, int]]:
    """Return lost ns, paused ns and count of each conflict, by kind without its prefix."""
    return {
        conflict.kind.removeprefix("STM_").removeprefix("CONTENTION_"): (
            conflict.lost_ns,
            conflict.paused_ns,
            conflict.count,
        )
        for conflict in log.conflicts
    }


def report_of(*files: LogFile, most_entries: int | None = None) -> StmReport:
    """Return a report on all logs of *files* by themselves."""
    groups = tuple(LogGroup(merge([log]), (log,)) for file in files for log in file.logs)
    return StmReport(files, groups, {}, most_entries)
