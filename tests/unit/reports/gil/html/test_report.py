"""The HTML report as a whole: it stands alone, says what is known, and trusts no name."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from typing import Any

from gilscope.model.application import Application
from gilscope.model.gil import Process, Recording, TracingCost
from gilscope.reports.gil.html import report as html_report
from support.recordings.gil import MS, convoy, full_mode, observation, with_edges
from support.recordings.html import EVIL, hostile, huge, large
from support.reports.html_tree import Element, parse

_SHELL_BYTES = 60_000
"""What the page takes without what the recording brings; the bar is 150 kB."""


def _page(recording: Recording) -> Element:
    return parse(html_report.render(recording))


def _figures(page: Element) -> dict[str, tuple[str, str]]:
    parts = page.one("dl", class_="figures").all("div")
    return {part.one("dt").text: (part.one("strong").text, part.one("span").text) for part in parts}


def _notes(page: Element) -> list[str]:
    return [note.text for note in page.one("ul", class_="notes").all("li")]


def _data(page: Element) -> Any:
    return json.loads(page.one("script", id="data").text)


def _with_process(recording: Recording, **changes: Any) -> Recording:
    seen = recording.observation
    process: Process = replace(seen.process, **changes)
    return replace(recording, observation=replace(seen, process=process))


def test_heading_says_what_was_traced_and_how() -> None:
    """
    Name, number, version, duration, mode, method and build.
    """
    header = _page(with_edges()).one("header")

    assert "app.py" == header.one("h1").text
    assert (
        "pid 4711, CPython 3.11.2; 2.000 s in contention mode. "
        "The GIL was found by its own call sites (build 571d98e01096)."
    ) == header.all("p")[1].text


def test_heading_tells_the_libc_method_and_an_early_end() -> None:
    """
    What is known depends on the method, and a process may end first.
    """
    recording = _with_process(with_edges(), method="libc")
    ended = replace(recording, observation=replace(recording.observation, ended=True))

    words = _page(ended).one("header").text

    assert "contention mode, until the process ended. The GIL was found through its calls" in words


def test_summary_has_the_sums_of_contention_mode() -> None:
    """
    No share of held time where none is known.
    """
    assert {
        "lost waiting": ("1.940 s", "in 235 finished waits of 8.36 ms on average"),
        "threads waiting": ("0.97", "at any moment, on average"),
        "convoy waits": ("100", "after a blocking call, for a switch interval (5 ms) or longer"),
        "drop latency": ("≈ 88.8 µs", "p50 of 230 drop requests; p99 ≈ 88.8 µs"),
        "both ends known": (
            "97 %",
            "of the time lost: where the waiter and where the holder stood",
        ),
    } == _figures(_page(with_edges()))


def test_summary_of_full_mode_says_how_long_the_lock_was_held() -> None:
    """
    1.8 of 2 s, in holds whose number and mean are exact.
    """
    figures = _figures(_page(full_mode()))

    base = "of 475 acquires of the GIL, all threads together"
    assert ("49 %", base) == figures["of acquires waited"]

    assert ("90 %", "in 475 finished holds of 3.78 ms on average") == figures["of the time held"]


def test_share_of_held_time_without_holds_is_an_estimate() -> None:
    """
    Looks from outside tell the share and nothing else.
    """
    recording = with_edges()
    seen = recording.observation
    lock = replace(seen.totals.gils[0], held_ns=1700 * MS)
    changed = replace(seen, totals=replace(seen.totals, gils=(lock,)))

    figures = _figures(_page(replace(recording, observation=changed)))

    assert ("≈ 85 %", "sampled from outside") == figures["of the time held"]


def test_summary_of_several_locks_adds_their_shares() -> None:
    """
    Two interpreters hold 0.9 locks each.
    """
    recording = full_mode()
    seen = recording.observation
    changed = replace(seen, totals=replace(seen.totals, gils=seen.totals.gils * 2))

    page = _page(replace(recording, observation=changed))

    assert "1.80" == _figures(page)["of 2 GILs held"][0]
    assert [["0", "1.965 s", "235", "90 %"]] * 2 == page.one("section", id="interpreters").rows[1:]


def test_summary_names_the_costliest_holder() -> None:
    """
    Its place in the application, the time, its share and the kind, in one sentence.
    """
    assert (
        "1.470 s, 76 % of the time lost, went to waits while crunch (app.py:4) kept the GIL "
        "(mostly convoy)."
    ) == _page(with_edges()).one("p", class_="lead").text
    elsewhere = replace(with_edges(), application=Application(packages=("shop",)))
    assert (
        "1.820 s, 94 % of the time lost, went to waits while code of libraries alone, "
        "as crunch (app.py:4), kept the GIL (mostly convoy)."
    ) == _page(elsewhere).one("p", class_="lead").text


def test_whose_code_it_was_is_a_table() -> None:
    """
    With the source line, and what had been called below it.
    """
    recording = replace(with_edges(), application=Application(packages=("app",)))
    rows = _page(recording).one("section", id="whose-code").rows

    assert [
        [
            "crunch (app.py:4)total += sum(range(20000))",
            "1.820 s",
            "94 %",
            "235",
        ],
        ["no Python code", "0.070 s", "4 %", "20"],
        ["unknown", "0.050 s", "3 %", "5"],
    ] == rows[1:]


def test_notes_say_what_was_not_seen() -> None:
    """
    Waits in flight, unknown ends, and events that were not counted in full.
    """
    assert [
        "Waits in flight at the end, counted up to there: 1, the longest for 3 ms.",
        "How often the GIL was acquired without a wait is not known: that takes full mode.",
        (
            "For 0.050 s of waiting the place of the waiter or the holder is unknown; it counts in "
            "all sums, and as “unknown” among the places."
        ),
        "2 waits begun before the recording, counted without the first part.",
    ] == _notes(_page(with_edges()))


def test_what_is_in_flight_may_not_count_where_waits_are_seen_in_windows() -> None:
    """
    So nothing is said of that.
    """
    recording = with_edges()
    totals = recording.observation.totals
    seen = replace(totals, cost=TracingCost(MS, 0.01, 10, waits_unseen_ns=MS))
    observation = replace(recording.observation, totals=seen)

    notes = _notes(_page(replace(recording, observation=observation)))

    assert "Waits in flight at the end: 1, the longest for 3 ms." == notes[0]


def test_notes_say_what_tracing_cost() -> None:
    """
    By its own estimate; and that no stack is known is said, too.
    """
    notes = _notes(_page(full_mode()))

    assert "Holds in flight at the end, counted up to there: 1, the longest for 3 ms." in notes
    assert "Where waiters and holders stood is not known for any of the waits." in notes
    assert (
        "Tracing cost the process about 2.4 ms of CPU time (1420 traps), "
        "0.13 % of what it used itself."
    ) == notes[-1]


def test_nothing_lost_is_said_as_well() -> None:
    """
    A recording without a wait has no pairs, no graphs and no excuses.
    """
    page = _page(Recording(observation(), mode="contention", duration_ns=1000 * MS))

    assert "No thread had to wait for the GIL." == page.one("p", class_="lead").text
    assert ["No event was lost."] == _notes(page)
    assert ["summary"] == [section.attributes["id"] for section in page.all("section")]


def test_waits_without_stacks_leave_out_what_needs_them() -> None:
    """
    The sums by role and the histograms are right all the same.
    """
    sections = [section.attributes["id"] for section in _page(convoy()).all("section")]

    assert ["summary", "changes", "durations", "threads"] == sections


def test_sections_come_in_the_order_of_questions() -> None:
    """
    How much, who, where, since when.
    """
    sections = [section.attributes["id"] for section in _page(with_edges()).all("section")]

    assert [
        "summary",
        "whose-code",
        "changes",
        "flames",
        "matrix",
        "pairs",
        "slow-drops",
        "durations",
        "threads",
    ] == sections


def test_each_process_that_lost_anything_has_a_part() -> None:
    """
    With ids of its own, so that it works like the first; the others stand in one line.
    """

    def of(pid: int, recording: Recording) -> Recording:
        seen = recording.observation
        process = replace(seen.process, pid=pid, name=f"<{pid}>.py")
        return replace(recording, observation=replace(seen, process=process))

    quiet = Recording(observation(), mode="contention", duration_ns=1000 * MS)
    page = parse(
        html_report.render(of(1, with_edges()), of(2, with_edges()), of(3, quiet), of(4, quiet))
    )
    ids = [element.attributes["id"] for element in page.below() if "id" in element.attributes]
    links = page.one("nav").all("a")

    assert sorted(set(ids)) == sorted(ids)
    assert ["#process", "#process-2"] == [link.attributes["href"] for link in links]
    assert [f"<{pid}>.py, pid {pid}" for pid in (1, 2)] == [link.text for link in links]
    assert "Lost nothing: <3>.py (3), <4>.py (4)." == page.one("nav").all("p")[1].text
    assert {"process", "process-2"} <= set(ids)
    first, second = page.all("article")
    assert first.one("table", class_="pairs").rows == second.one("table", class_="pairs").rows
    assert {"by-role-2", "by-site-2"} == {
        label.attributes["for"] for label in second.one("section", id="matrix-2").all("label")
    }
    assert 2 == len(page.all("script", type="application/json"))


def test_untrusted_recording_has_no_numbers() -> None:
    """
    The reason, and nothing else.
    """
    recording = with_edges()
    seen = replace(recording.observation, invalid="the probes are in the <wrong> place")

    page = _page(replace(recording, observation=seen))

    assert (
        "Nothing is reported, because the probes are in the <wrong> place." == page.one("main").text
    )
    assert [] == page.all("script")


def test_page_loads_nothing_from_elsewhere() -> None:
    """
    Nothing on it has an address.
    """
    page = _page(large())
    names = {"src", "href", "action", "data", "srcset", "poster", "style", "onclick"}

    found = [element.name for element in page.below() if names & set(element.attributes)]

    assert [] == found
    assert "url(" not in page.one("style").text
    assert "@import" not in page.one("style").text


def test_policy_allows_this_style_and_this_script_only() -> None:
    """
    The digests are those of what is on the page.
    """
    rendered = html_report.render(with_edges())
    page = parse(rendered)
    (policy,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})

    def digest(pattern: str) -> str:
        (content,) = re.findall(pattern, rendered, re.DOTALL)
        hashed = hashlib.sha256(content.encode()).digest()
        return f"'sha256-{base64.b64encode(hashed).decode()}'"

    assert (
        "default-src 'none'; "
        f"style-src {digest('<style>(.*?)</style>')}; "
        f"script-src {digest('<script>(.*?)</script>')}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    ) == policy.attributes["content"]


def test_names_are_text_whatever_they_are() -> None:
    """
    Markup in every text of the traced process makes no element and ends none.
    """
    page = _page(hostile())

    assert [] == page.all("img")
    assert ["application/json", ""] == [
        script.attributes.get("type", "") for script in page.all("script")
    ]
    assert page.one("h1").text.startswith("</script><img src=x onerror=")
    assert html_report.render(hostile()).encode()


def test_data_cannot_end_its_element() -> None:
    """
    No bracket, ampersand or line separator stands in it as itself; it says the same.
    """
    rendered = html_report.render(hostile())
    (raw,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', rendered)

    assert not set(raw) & set("<>&\u2028\u2029")
    ((function, *_), *_) = json.loads(raw)["frames"]
    assert EVIL.replace("\u202e", "").replace("\ud800", "") == function


def test_page_is_small() -> None:
    """
    What is not data takes a fixed, small part.
    """
    shell = html_report.render(Recording(observation(), mode="contention", duration_ns=1000 * MS))

    assert len(shell.encode()) < _SHELL_BYTES


def test_many_pairs_are_cut_and_counted() -> None:
    """
    Of 3000 pairs a thousand have a row; the rest is summed up, and all are in the data.
    """
    page = _page(huge(3000))

    assert 1000 == len(page.all("tr", class_="pair"))
    (left_out,) = [
        words.text for words in page.one("section", id="pairs").all("p") if "left out" in words.text
    ]
    assert left_out.startswith("2000 more pairs with 2.001 s together are left out")
    assert 3000 == len(_data(page)["edges"])


def test_what_was_scaled_up_is_marked() -> None:
    """
    Of a `serve` that reads the stacks of some of the waits: in the lead, tables and the notes.
    """
    recording = with_edges()
    totals = replace(recording.observation.totals, cost=TracingCost(0, 0.0, 0, stack_share=0.25))
    page = _page(replace(recording, observation=replace(recording.observation, totals=totals)))
    headings = {
        heading.text for table in page.all("table") for heading in table.all("th") if heading.text
    }

    assert page.one("p", class_="lead").text.startswith("≈ 1.470 s, ≈ 76 % of the time lost, ")
    assert {"≈ time lost", "≈ share", "≈ times"} <= headings
    assert [note for note in _notes(page) if "(≈) is scaled up from these" in note]


def test_failed_wakeups_are_those_of_a_lock_that_has_them() -> None:
    """
    CPython 2.7's; nobody asks for PyPy's either, and nobody is woken for it in vain.
    """
    recording = convoy()
    seen = recording.observation
    pages = []
    for wakes_in_vain in (True, False):
        process = replace(seen.process, asks_holder=False, wakes_in_vain=wakes_in_vain)
        changed = replace(recording, observation=replace(seen, process=process))
        pages.append("failed wake-ups" in html_report.render(changed))

    assert [True, False] == pages
