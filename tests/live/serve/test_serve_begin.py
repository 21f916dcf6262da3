"""``gilscope serve``: how it begins and ends."""

import signal
import subprocess

import pytest

from accuracy.truth import started
from support.commands.gilscope import gilscope
from support.commands.serve import serving

pytestmark = [pytest.mark.live, pytest.mark.beside_others]

_PYTHON = "/usr/bin/python3"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_in_order(number: signal.Signals) -> None:
    """
    SIGTERM and SIGINT end the service with 0, without a traceback, and leave the target alone.
    """
    with started([_PYTHON], "exact_count.py") as workload:
        with serving("-p", str(workload.pid)) as service:
            outcome = service.end(number)
        workload.run()

        assert 0 == workload.finish()
    assert (0, "") == (outcome.exit_code, outcome.output)
    assert [
        f"INFO: traced: exact_count.py, pid {workload.pid}",
        f"Serving {service.url}metrics. Ctrl-C to end.",
    ] == outcome.messages.splitlines()


def test_address_that_is_not_ours() -> None:
    """
    An address of another machine gives exit code 9.
    """
    outcome = gilscope("serve", "--match", "x", "--listen", "192.0.2.1:9845")

    assert 9 == outcome.exit_code
    assert outcome.messages.startswith("error: cannot listen on 192.0.2.1:9845: Cannot assign")


def test_host_that_does_not_exist() -> None:
    """
    A name without an address gives exit code 9.
    """
    outcome = gilscope("serve", "--match", "x", "--listen", "host.invalid:9845")

    assert 9 == outcome.exit_code
    assert outcome.messages.startswith("error: cannot listen on host.invalid:9845: ")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--all", "--match", "x"],
        ["--match", "("],
        ["--all", "--listen", "nowhere"],
        ["--all", "--listen", "127.0.0.1:65536"],
        ["--all", "--listen", "::1:9845"],
        ["-p", "one"],
    ],
)
def test_usage_errors(arguments: list[str]) -> None:
    """
    What cannot be meant is refused with exit code 2 and a reason.
    """
    outcome = gilscope("serve", *arguments)

    assert (2, "") == (outcome.exit_code, outcome.output)
    assert "error: " in outcome.messages


def test_process_that_does_not_exist() -> None:
    """
    A named process must be there: exit code 3 says which is not.
    """
    with subprocess.Popen([_PYTHON, "-c", ""]) as gone:
        pass
    outcome = gilscope("serve", "-p", str(gone.pid), "--listen", "127.0.0.1:0")

    assert (3, "") == (outcome.exit_code, outcome.output)
    assert f"error: there is no process {gone.pid}" == outcome.messages.splitlines()[0]


def test_without_a_page_nothing_is_kept_for_one() -> None:
    """
    The same figures, no page, and no waits for its reports in the kernel.
    """
    with started([_PYTHON], "exact_count.py") as workload:
        target = ("-p", str(workload.pid))
        with serving(*target) as with_page, serving(*target, "--no-page") as without:
            scrapes = [service.scrape() for service in (with_page, without)]
            page = without.get("/")
            snapshot = gilscope("snapshot", without.url)

    assert [1, 1] == [scrape.total("gilscope_targets", state="traced") for scrape in scrapes]
    kept = [scrape.samples("gilscope_agent_table_bytes", table="span_budget") for scrape in scrapes]
    assert [1, 0] == [len(each) for each in kept]
    assert 404 == page.status
    assert "answers 404: this agent runs with --no-page" in snapshot.messages
    assert 15 == snapshot.exit_code
