"""The recording as Markdown, for the summary of a job."""

from dataclasses import replace

from gilscope.model.gil import Recording, Refusal, Tally, TracingCost
from gilscope.model.kinds import Kind
from gilscope.model.session import Session
from gilscope.reports.gil import markdown
from gilscope.reports.gil.markdown import MOST_ROWS
from support.recordings.gil import MS, convoy, observation, session_of, thread, with_edges

_CONVOY = """\
### GIL: Severe: convoy: serve (app.py:8)

queued 50 times a second for at least a switch interval (5 ms), 15 ms on average:
75 % of its time, in 100 of the 125 times that it had to wait after a blocking call.
Behind crunch (app.py:4), for 73 % of that time.
What helps: compute in another process, or in code that releases the GIL: at most 1.130s less;
sys.setswitchinterval(0.0005): ≈ 589 us to 10.5 ms a wait, with ≈ 8.6 times as many switches.

app.py, pid 4711, CPython 3.11.2: 2.000s in contention mode, 1.940s lost waiting in 235 waits.

| whose code kept the GIL | time lost | of all |
| --- | ---: | ---: |
| crunch (app.py:4) | 1.470s | 76 % |
| Pattern.scan &lt;café&gt; (match.py:27) | 0.350s | 18 % |
| (no Python code) | 0.070s | 4 % |
| (unknown) | 0.050s | 3 % |

| who waited | time lost | of all |
| --- | ---: | ---: |
| serve (app.py:8), convoy | 1.530s | 79 % |
| crunch (app.py:2), preemption | 0.410s | 21 % |

What a change would bring (estimates):

- crunch (app.py:4) in another process:
  at most 1.130s less is lost (58 %), and 0.340s less with one for each of its threads,
  if a CPU is free for it, and little has to go back and forth.
- sys.setswitchinterval(0.0005) instead of 0.005:
  ≈ 589 us to 10.5 ms for each convoy wait, not 15 ms; ≈ 8.6 times the switches,
  if threads wait for as many turns of others as now, and holders drop the GIL as soon.

- Not counted in full: 2 waits begun before the recording, counted without the first part.
"""

_COST = (
    "- Tracing cost the process about 2.4 ms of CPU time (1420 traps), 0.13 % of what it used "
    "itself."
)


def _worker(recording: Recording) -> Recording:
    seen = recording.observation
    process = replace(seen.process, pid=4712, name="__worker__.py")
    return replace(recording, observation=replace(seen, process=process))


def test_convoy() -> None:
    """
    The verdict, the places that kept the GIL, the roles that waited, and what is missing.
    """
    assert _CONVOY == markdown.render(session_of(with_edges()))


def test_several_processes_have_a_table_of_their_own() -> None:
    """
    Their figures are added up in the others; the verdict is that of the worst.
    """
    lines = markdown.render(session_of(with_edges(), _worker(convoy()))).splitlines()

    assert "### GIL: Severe in app.py, pid 4711: convoy: serve (app.py:8)" == lines[0]
    assert (
        "2 processes with a GIL: 2.000s in contention mode, 3.880s lost waiting in 470 waits."
        in lines
    )
    assert "| serve (app.py:8), convoy | 3.060s | 79 % |" in lines
    at = lines.index("| process | time lost | of all |")
    assert [
        "| app.py, pid 4711 | 1.940s | 50 % |",
        r"| \_\_worker\_\_.py, pid 4712 | 1.940s | 50 % |",
    ] == lines[at + 2 : at + 4]


def test_nothing_lost_has_no_tables() -> None:
    """
    The verdict says so.
    """
    quiet = replace(convoy(), observation=observation())
    lines = markdown.render(session_of(quiet)).splitlines()

    assert "### GIL: None: no thread had to wait for the GIL." == lines[0]
    assert not [line for line in lines if line.startswith("|")]


def test_long_tables_end() -> None:
    """
    With how many rows are left out.
    """
    threads = tuple(
        thread(tid, f"role{tid:02} (a.py:{tid})", {Kind.PREEMPTION: Tally((100 - tid) * MS, 1)})
        for tid in range(1, 31)
    )
    lines = markdown.render(
        session_of(replace(convoy(), observation=observation(threads)))
    ).splitlines()

    assert MOST_ROWS == sum(line.startswith("| role") for line in lines)
    assert "| and 20 more | | |" in lines


def test_what_the_figures_do_not_say_stands_below() -> None:
    """
    What is not reported, what was not traced, and what tracing has cost.
    """
    recording = with_edges()
    seen = recording.observation
    cost = replace(seen.totals, cost=TracingCost(2_400_000, 0.0013, traps=1420))
    costly = replace(recording, observation=replace(seen, totals=cost))
    spoilt = replace(_worker(recording), observation=replace(seen, invalid="it *moved*"))
    refusal = Refusal(9, "old.py", "CPython 3.5 is too old", "Use a later one.")
    session = Session(2000 * MS, "contention", (costly, spoilt), refusals=(refusal,))

    lines = markdown.render(session).partition("(estimates):\n\n")[2].partition("\n\n")[2]
    notes = lines.splitlines()

    assert [
        r"- Nothing is reported of app.py, pid 4711: it \*moved\*.",
        "- Not traced: old.py, pid 9: CPython 3.5 is too old.",
        _CONVOY.splitlines()[-1],
        _COST,
    ] == notes


def test_nothing_but_refusals() -> None:
    """
    There is no verdict then.
    """
    refusal = Refusal(9, "old.py", "CPython 3.5 is too old", "Use a later one.")
    shown = markdown.render(Session(MS, "contention", (), refusals=(refusal,)))

    assert shown.startswith("0 processes with a GIL: 0.001s in contention mode, 0.000s lost")
