"""What a fault is played with: targets and agents, and the checks that follow each of them."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from faults.aftermath import ends_well, frees_its_objects, is_unharmed, leaves_no_process
from faults.agent_watch import AgentWatch
from faults.plain_words import not_plain
from faults.registry import Failed, Verdict
from faults.targets import SYSTEM_PYTHON, Target, contending
from support.commands.gilscope import Gilscope, Outcome, eventually, gilscope_started
from support.commands.json_reports import only_process
from support.commands.serve import Scrape, Service, service_of

__all__ = ["AGENT_MARK", "Bench", "wait_s_of"]

AGENT_MARK = "GILSCOPE_FAULT_AGENT"
TRACING = "Tracing the GIL of"
_LEAST_SHARE = 0.3
"""Of the time of a thread that always waits: on a busy machine a target stands still at times."""
_MOST_SHARE = 1.05
"""For the moment between a release and the next take one thread more waits than at other times,
and on a busy machine such moments are long."""
_COUNTED_S = 1.0
_WAITS = "gilscope_gil_thread_waits_total"
_WAIT_SECONDS = "gilscope_gil_thread_wait_seconds_total"


@dataclass(slots=True)
class Bench:
    """Starts what a fault needs, and finds out afterwards what it has done."""

    folder: Path
    """Of this fault alone, and removed after it."""
    is_half: bool
    """Whether few repetitions are to do."""
    failures: list[Failed] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)
    _agents: list[Gilscope] = field(default_factory=list)
    _targets: dict[int, tuple[Target, float]] = field(default_factory=dict)
    _mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    _watch: AgentWatch = field(default_factory=AgentWatch)

    def times(self, half: int, whole: int) -> range:
        """Return as many numbers as repetitions are to do."""
        return range(half if self.is_half else whole)

    # What a fault starts.

    def target(  # noqa: PLR0913 - all have a default
        self,
        *python: str,
        threads: int = 2,
        prefix: Sequence[str] = (),
        program: Path | None = None,
        arguments: Sequence[str] = (),
        may_end: bool = False,
        keeps_speed: bool = True,
    ) -> Target:
        """Start a contending process; unless it *may_end*, it has to be unharmed at the end.

        One that does not *keep its speed* has to live and to have the code of its files.
        """
        own = {"program": program} if program else {}
        started = contending(
            self.folder,
            python or (SYSTEM_PYTHON,),
            threads=threads,
            prefix=prefix,
            arguments=arguments,
            **own,
        )
        target = self._stack.enter_context(started)
        if not may_end:
            before_ns = target.cpu_ns_per_unit() if keeps_speed else float("inf")
            self._targets[target.pid] = target, before_ns
        return target

    def agent(
        self,
        *arguments: str,
        wrapper: Sequence[str] = (),
        extra: Mapping[str, str] | None = None,
        stdout: IO[bytes] | None = None,
    ) -> Gilscope:
        """Start gilscope; it is ended with the fault if it has not by then."""
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        temporary.chmod(0o777)
        variables = {AGENT_MARK: self._mark, "TMPDIR": str(temporary), **(extra or {})}
        started = gilscope_started(*arguments, wrapper=wrapper, extra=variables, stdout=stdout)
        command = self._stack.enter_context(started)
        self._agents.append(command)
        self._watch.add(command.pid)
        return command

    def run(
        self,
        *arguments: str,
        wrapper: Sequence[str] = (),
        extra: Mapping[str, str] | None = None,
        typed: str = "",
    ) -> Outcome:
        """Run gilscope to its end with *typed* on its standard input; what it says is checked."""
        command = self.agent(*arguments, wrapper=wrapper, extra=extra)
        if typed and command.process.stdin is not None:
            command.process.stdin.write(typed)
        return command.outcome()

    def serve(
        self,
        *arguments: str,
        wrapper: Sequence[str] = (),
        extra: Mapping[str, str] | None = None,
    ) -> Service:
        """Serve on a free port of the loopback; each target has series of its own."""
        line = ("serve", "--per-process", "--listen", "127.0.0.1:0", *arguments)
        return service_of(self.agent(*line, wrapper=wrapper, extra=extra))

    def recording(self, target: Target, *arguments: str, **how: Any) -> Gilscope:
        """Begin to record *target*; returns when the probes are in."""
        command = self.agent("record", "-p", str(target.pid), *arguments, **how)
        command.says(TRACING)
        return command

    def report(self, pid: int, *arguments: str, **how: Any) -> Any:
        """Record *pid* for a moment; return the report as JSON writes it."""
        line = ("record", "-p", str(pid), "-d", "1", "--format", "json", *arguments)
        outcome = self.run(*line, **how)
        self.expect(Verdict.AGENT_DIED, outcome.exit_code == 0, f"record: {outcome}")
        return only_process(outcome.output)

    # What has to hold while it happens.

    def expect(self, verdict: Verdict, is_so: object, seen: str) -> None:
        """Raise Failed with what was *seen* unless *is_so*."""
        if not is_so:
            raise Failed(verdict, seen)

    def equal(self, verdict: Verdict, expected: object, actual: object, what: str) -> None:
        """Raise Failed unless both are equal."""
        self.expect(verdict, expected == actual, f"{what}: {actual!r}, not {expected!r}")

    def says_plainly(self, text: str, where: str) -> None:
        """Raise Failed unless *text* is nothing but plain words."""
        found = not_plain(text)
        self.expect(Verdict.UNCLEAR_MESSAGE, not found, f"{where}: {found}")

    def lives(self, service: Service) -> Scrape:
        """Return a scrape of an agent that must be well."""
        code = service.command.process.poll()
        said = service.command.messages[-200:]
        self.expect(Verdict.AGENT_DIED, code is None, f"serve ended with {code}: {said!r}")
        page = service.get("/healthz")
        self.equal(Verdict.HANGS, 200, page.status, "/healthz")
        return service.scrape()

    def sees(self, service: Service, target: Target) -> Scrape:
        """Wait until waits of *target* are counted, and return that scrape."""
        pid = str(target.pid)

        def seen() -> Scrape | None:
            scrape = self.lives(service)
            return scrape if scrape.total(_WAITS, pid=pid) > 0 else None

        found = eventually(seen)
        assert found is not None
        return found

    def counts_rightly(self, service: Service, target: Target, waiting: int = 1) -> None:
        """Expect that *waiting* threads of a contending target wait at any moment."""
        pid = str(target.pid)
        before = self.sees(service, target)
        after = before
        while after.before_s < before.after_s + _COUNTED_S:
            target.advances(1000)
            after = self.lives(service)
        valid = after.total("gilscope_probe_valid", pid=pid)
        self.equal(Verdict.WRONG_NUMBER, 1, valid, "probe_valid")
        gained_s = after.total(_WAIT_SECONDS, pid=pid) - before.total(_WAIT_SECONDS, pid=pid)
        least_s = max(0.0, after.before_s - before.after_s)
        most_s = after.after_s - before.before_s
        self.is_share(gained_s, least_s, most_s, waiting)

    def is_share(self, wait_s: float, least_s: float, most_s: float, waiting: int = 1) -> None:
        """Expect that *waiting* threads waited through a time between the two that are given."""
        most_wait_s = _MOST_SHARE * (waiting + 1) * most_s
        is_right = _LEAST_SHARE * waiting * least_s <= wait_s <= most_wait_s
        words = f"{wait_s:.3f} s of waits by {waiting} threads in {least_s:.3f} to {most_s:.3f} s"
        self.expect(Verdict.WRONG_NUMBER, is_right, words)

    def reports_rightly(self, target: Target, *arguments: str, waiting: int = 1, **how: Any) -> Any:
        """Record a contending target; expect a valid report with its waits, and return that."""
        report = self.report(target.pid, *arguments, **how)
        self.expect(Verdict.WRONG_NUMBER, report["process"]["valid"], "the report is not valid")
        duration_s = report["duration_s"]
        self.is_share(wait_s_of(report), duration_s, duration_s, waiting)
        return report

    @contextmanager
    def steady(
        self, service: Service, *, descriptors: int = 8, grown_kib: int = 24_000
    ) -> Iterator[None]:
        """Expect that the agent has no more of either after the block than it had before."""
        before = self._watch.figures(service.command.pid)
        yield
        most = before.descriptors + descriptors

        def is_back() -> bool:
            return self._watch.figures(service.command.pid).descriptors <= most

        try:
            eventually(is_back)
        except AssertionError as error:
            now = self._watch.figures(service.command.pid)
            words = f"{now.descriptors} descriptors, {before.descriptors} before"
            raise Failed(Verdict.LEAK, words) from error
        now = self._watch.figures(service.command.pid)
        grown = now.private_kib - before.private_kib
        self.expect(Verdict.LEAK, grown <= grown_kib, f"private memory grew by {grown} KiB")

    # What has to hold when it is over.

    def finish(self, error: BaseException | None = None) -> None:
        """End everything, and note every harm that is found, the one of *error* among them."""
        if isinstance(error, Failed):
            self.failures.append(error)
        checks: list[Callable[[], None]] = []
        checks += [partial(ends_well, agent) for agent in self._agents]
        checks.append(self._is_plain)
        checks.append(partial(frees_its_objects, self._watch))
        checks.append(partial(leaves_no_process, AGENT_MARK, self._mark))
        checks += [partial(is_unharmed, *known) for known in self._targets.values()]
        checks.append(self._leaves_no_file)
        for check in checks:
            try:
                check()
            except Failed as failed:
                self.failures.append(failed)
        self._watch.stop()
        self._stack.close()
        os.chdir("/")
        shutil.rmtree(self.folder, ignore_errors=True)

    def finally_do(self, what: Callable[[], object]) -> None:
        """Call *what* when the fault is over, before its processes are ended."""
        self._stack.callback(what)

    def _is_plain(self) -> None:
        for agent in self._agents:
            line = str(agent.process.args).partition("'gilscope', ")[2][:60]
            for where in ("messages", "output"):
                try:
                    text = getattr(agent, where)
                except UnicodeDecodeError as error:
                    raise Failed(Verdict.UNCLEAR_MESSAGE, f"{line}: no UTF-8: {error}") from error
                self.says_plainly(text, f"{line!r}, {where}")

    def _leaves_no_file(self) -> None:
        temporary = self.folder / "tmp"
        left = sorted(str(path.relative_to(temporary)) for path in temporary.rglob("*"))
        self.equal(Verdict.LEAK, [], left, "temporary files")


def wait_s_of(report: Mapping[str, Any]) -> float:
    """Return what all threads of a report waited in sum."""
    return float(sum(thread["wait_s"] for thread in report["threads"]))


def new_folder() -> Path:
    """Return a new folder that everybody may enter."""
    folder = Path(tempfile.mkdtemp(prefix="gilscope-fault-"))
    # Targets of other users write there; what is another's they cannot replace.
    os.chmod(folder, 0o1777)  # noqa: PTH101, S103 - see above
    return folder
