"""What never stops during a soak: processes, threads, clients and logs that come and go."""

import http.client
import json
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from accuracy.truth import started
from faults.bench import Bench
from faults.targets import SYSTEM_PYTHON, Target
from support.commands.serve import Service
from support.stm_log.program import played_log

__all__ = ["Churn"]

_PAUSE_S = 0.2
"""Between two turns: the agent is to be worn out, not the machine."""
_MOST_LOG_BYTES = 5_000_000

_THREADS = """
import threading
threads = [threading.Thread(target=sum, args=(range(50000),)) for _ in range(30)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
_CHILDREN = """
import os, subprocess, sys
code = "import threading; t = [threading.Thread(target=sum, args=(range(300000),)) for _ in 'ab']"
code += "; [x.start() for x in t]; [x.join() for x in t]"
for _ in range(3):
    subprocess.run([sys.executable, "-SEc", code], check=True)
child = os.fork()
if not child:
    os._exit(0)
os.waitpid(child, 0)
"""
_EXEC = """
import os, sys
os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
"""


@dataclass(slots=True)
class Churn:
    """Threads that do each their kind of harmless thing again and again until they are stopped."""

    bench: Bench
    service: Service
    failures: list[str] = field(default_factory=list)
    turns: dict[str, int] = field(default_factory=dict)
    renewed: str = "nothing"
    """In the names of series that begin anew, with each exec of a process."""
    _ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin all of it."""
        threaded, forking, executing = (self.bench.target() for _ in range(3))
        self.renewed = f"('pid', '{executing.pid}')"
        self._again("threads", lambda: threaded.do(_THREADS))
        self._again("children", lambda: forking.do(_CHILDREN))
        self._again("execs", lambda: _execute(executing))
        self._again("scrapes", self._scrape)
        self._again("page views", self._view)
        self._again("log turns", self._write)
        thread = threading.Thread(target=self._guarded, args=("prefork turns", self._prefork))
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """Let each end its turn."""
        self._ended.set()
        for thread in self._threads:
            thread.join(120)

    def _again(self, name: str, turn: Callable[[], object]) -> None:
        def run() -> None:
            while not self._ended.wait(_PAUSE_S):
                turn()
                self.turns[name] = self.turns.get(name, 0) + 1

        thread = threading.Thread(target=self._guarded, args=(name, run))
        self._threads.append(thread)
        thread.start()

    def _guarded(self, name: str, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception:  # noqa: BLE001 - it is a failure of the soak, and its end
            self.failures.append(f"{name}: {traceback.format_exc(limit=3)}")

    def _scrape(self) -> None:
        if self.service.get("/metrics").status != http.HTTPStatus.OK:
            raise AssertionError("/metrics is not answered")

    def _view(self) -> None:
        for path in ("/", "/live", "/healthz"):
            connection = http.client.HTTPConnection(
                self.service.host, self.service.port, timeout=60
            )
            connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
            connection.getresponse().read(2000)
            connection.close()

    def _write(self) -> None:
        path = self.bench.folder / "app.stm"
        content = played_log("E16", 500, self.turns.get("log turns", 0)).content
        if path.exists() and path.stat().st_size > _MOST_LOG_BYTES:
            path.rename(path.with_name("app.1"))
        if path.exists():
            # A log has one head; what follows are records.
            content = content[len(played_log("E16", 0).content) :]
        with path.open("ab") as file:
            file.write(content)

    def _prefork(self) -> None:
        # The word in its command line is what the agent matches.
        word = str(self.bench.folder)
        with started([SYSTEM_PYTHON, "-X", word], "prefork.py", "--workers", "2") as workload:
            workload.command("begin")
            workload.answer()
            while not self._ended.wait(2):
                workload.command("restart")
                workload.answer()
                self.turns["prefork turns"] = self.turns.get("prefork turns", 0) + 1
            workload.command("stop")
            workload.answer()
            workload.finish()


def _execute(target: Target) -> None:
    target.workload.command(json.dumps(_EXEC))
    target.workload.answer()
    # So long that it is attached before it is gone again, more often than not.
    target.advances(20_000)
