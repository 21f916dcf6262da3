"""The situations in which gilscope gives up, each with its exit code and its remedy."""

from collections.abc import Mapping

from gilscope.text.printable import printable_lines

__all__ = [
    "CannotListen",
    "CannotWrite",
    "CountersNotKept",
    "FilesDiffer",
    "GilCodeNotFound",
    "GilscopeError",
    "InvalidWebConfig",
    "KernelOrBccMissing",
    "LimitPassed",
    "LimitReached",
    "MemoryUnanswered",
    "NoAnswer",
    "NoGil",
    "NoProcesses",
    "NotAReport",
    "NotAnStmLog",
    "NotPermitted",
    "NotPython",
    "NothingMapped",
    "UnsupportedPython",
    "exit_codes",
    "without_gil",
]


_ANY = {0: "done", 1: "unexpected", 2: "usage"}
"""The exit codes that stand for no situation of their own."""


class GilscopeError(Exception):
    """A failure that a user can understand and act on.

    The message says what failed and which fact was checked; *remedy* says what to do about it.
    Both are free of what a terminal would obey: names and paths of other programs are part of them.
    The exit codes are an interface for scripts: append, never renumber.
    """

    exit_code = 1
    exit_words = ""
    """What `gilscope --help` says of that code."""
    remedy = ""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(printable_lines(message))
        if remedy is not None:
            self.remedy = printable_lines(remedy)


class NotPython(GilscopeError):
    """There is no such process, or it does not run a Python interpreter."""

    exit_code = 3
    exit_words = "no such process or not Python"
    remedy = "List the Python processes of this host with: gilscope doctor --all"


class NothingMapped(NotPython):
    """The process maps no files, or not yet: what it runs cannot be told."""


class GilCodeNotFound(GilscopeError):
    """The interpreter is CPython with a GIL, but its code could not be located with certainty."""

    exit_code = 4
    exit_words = "GIL code not found"
    remedy = (
        "gilscope attaches only where it is certain. Install the debug symbols of this interpreter "
        "(on Debian: apt install python3-dbg) and try again, or report the build."
    )


class NotPermitted(GilscopeError):
    """The kernel refused something that gilscope needs."""

    exit_code = 5
    exit_words = "not permitted"
    remedy = (
        "Run as root, or grant CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE; "
        "`gilscope doctor` names the one that is missing."
    )


class KernelOrBccMissing(GilscopeError):
    """The kernel, its BPF support, the headers or BCC itself is missing or too old."""

    exit_code = 6
    exit_words = "kernel or BCC missing"
    remedy = "`gilscope doctor` says what is missing and the command that installs it."


class LimitReached(KernelOrBccMissing):
    """A limit of resources is too low: memory, open files, or threads."""

    remedy = "Raise the limit (ulimit -a shows all of them), or that of the service or container."


class NoGil(GilscopeError):
    """A free-threaded build whose GIL is off: there is none to wait for."""

    exit_code = 7
    exit_words = "free-threaded: no GIL"
    with_a_gil = (
        "PYTHON_GIL=1 or -X gil=1 starts it with a GIL; if it switches that on later, serve, top "
        "and record --match trace it from then on."
    )
    remedy = f"`gilscope record --locks` traces the locks that its threads wait for. {with_a_gil}"


def without_gil(pid: int, version: str) -> NoGil:
    """Return what says that *pid* runs a free-threaded build of CPython *version* without a GIL."""
    return NoGil(
        f"process {pid} runs without a GIL: this is the free-threaded build CPython {version}, "
        "whose threads wait for each other's locks only"
    )


class UnsupportedPython(GilscopeError):
    """A Python whose lock gilscope does not know: CPython 2 and 3.0 to 3.5, or too new."""

    exit_code = 8
    exit_words = "unsupported Python"
    remedy = (
        "gilscope knows the GIL of CPython 2.7 and 3.6 to 3.15, and that of PyPy 7.3.2 and later."
    )


class CannotListen(GilscopeError):
    """The address to serve on is taken or not available."""

    exit_code = 9
    exit_words = "cannot listen"
    remedy = "Choose another address with --listen HOST:PORT."


class CannotWrite(GilscopeError):
    """Standard output takes nothing any more."""

    exit_code = 1


class NotAnStmLog(GilscopeError):
    """A file that cannot be read, or that no PyPy-STM has written."""

    exit_code = 10
    exit_words = "not an STM log"
    remedy = "PyPy-STM writes a log when PYPYSTM names a file: PYPYSTM=app.log pypy-stm app.py"


class InvalidWebConfig(GilscopeError):
    """The web configuration file cannot be read, or asks for what cannot be done."""

    exit_code = 11
    exit_words = "web configuration"
    remedy = "The format is that of Prometheus' exporters; gilscope-serve(8) says what of it works."


class FilesDiffer(GilscopeError):
    """Files that would be overwritten have another content than what is to be written."""

    exit_code = 12
    exit_words = "files differ"
    remedy = "Overwrite them with --force, or choose another folder."


class NoProcesses(GilscopeError):
    """gilscope is alone in a pid namespace of its own: there is nothing that it could trace."""

    exit_code = 13
    exit_words = "no process to be seen"
    remedy = (
        "Share the pid namespace of what is to be traced: docker run --pid container:TARGET ..., "
        "Kubernetes: shareProcessNamespace: true"
    )


class MemoryUnanswered(GilscopeError):
    """A process has memory that does not answer, so it is left alone."""

    exit_code = 14
    exit_words = "memory of the process does not answer"
    remedy = (
        "A page of it comes from a file system, a swap device or a program that hangs: `mount` and "
        "`dmesg` tell which. Try again when that has been fixed."
    )


class NoAnswer(GilscopeError):
    """A running `gilscope serve` cannot be asked, or does not answer as it is asked."""

    exit_code = 15
    exit_words = "no answer from gilscope serve"
    remedy = "Its first line says where it serves; `curl URL/healthz` says whether it is alive."


class LimitPassed(GilscopeError):
    """What was measured passes a limit that was given with ``--fail-if``."""

    exit_code = 16
    exit_words = "limit passed"
    remedy = "The report says whose code it is; gilscope diff compares it with an earlier one."


class NotAReport(GilscopeError):
    """A file cannot be read, or is no report that can be compared."""

    exit_code = 17
    exit_words = "no report to compare"
    remedy = "Make one with: gilscope record ... --format json=FILE"


class CountersNotKept(GilscopeError):
    """The file of --keep-counters is another agent's, of something else, or cannot be written."""

    exit_code = 18
    exit_words = "counters cannot be kept"
    remedy = "Give --keep-counters a file of its own, in a folder that gilscope may write to."


def exit_codes() -> Mapping[int, str]:
    """Return every exit code of gilscope's own, with a few words each, in their order."""
    found = {kind.exit_code: kind.exit_words for kind in GilscopeError.__subclasses__()}
    return dict(sorted({**found, **_ANY}.items()))
