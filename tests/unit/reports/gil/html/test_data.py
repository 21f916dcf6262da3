"""What the script of the HTML report is given."""

from dataclasses import replace

from gilscope.model.application import Application
from gilscope.model.gil import Edge, Recording, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import UNKNOWN_STACK, Frame, Stack
from gilscope.naming.places import SiteNames
from gilscope.reports.gil.html.data import report_data
from gilscope.reports.gil.html.pairs import pairs_of
from support.recordings.gil import MS, with_edges


def _data(recording: Recording) -> dict[str, list[list[object]]]:
    totals, names = recording.observation.totals, SiteNames()
    pairs = pairs_of(totals.edges, names)
    return report_data(totals, recording.application, recording.sources, pairs, names)


def test_edges_name_stacks_and_stacks_name_frames() -> None:
    """
    The first edge, followed to the end; each text is there once.
    """
    data = _data(with_edges())
    waiter, holder, ns, count = data["edges"][0]

    assert (0, 1, 1100 * MS, 90) == (waiter, holder, ns, count)
    assert ["", [0, 1, 2, 3, 4]] == data["stacks"][0]
    assert ["handle", 0, 13, 0, "os.read(fd, 1)"] == data["frames"][0]
    assert ["app.py", "/srv/app.py"] == data["files"][0]
    assert len(data["frames"]) == len({tuple(frame) for frame in data["frames"]})


def test_edges_add_up_to_the_time_lost() -> None:
    """
    Nothing is left out of the graphs.
    """
    assert 1940 * MS == sum(edge[2] for edge in _data(with_edges())["edges"])  # type: ignore[misc]


def test_states_of_stacks_have_words() -> None:
    """
    A whole stack has none.
    """
    data = _data(with_edges())

    states = [state for state, _ in data["stacks"]]

    assert ["", "", "cut", "torn", "no_python", "unknown"] == states
    assert set(states) - {""} == set(data["words"])


def test_pairs_name_their_edges() -> None:
    """
    In the order of the rows of the table.
    """
    assert [[0], [1], [2], [3], [4], [5]] == _data(with_edges())["pairs"]


def test_origins_tell_application_library_and_bootstrap() -> None:
    """
    Functions of `threading` that are not the beginning of a thread are a library's.
    """
    library = "/usr/lib/python3.11"
    frames = (
        Frame("handle", "/srv/app.py", 1, 2),
        Frame("loads", f"{library}/json/__init__.py", 1, 2),
        Frame("render", "/srv/.venv/lib/python3.11/site-packages/jinja2/x.py", 1, 2),
        Frame("<module>", "<frozen runpy>", 1, 2),
        Frame("Condition.wait", f"{library}/threading.py", 1, 2),
        Frame("Thread.run", f"{library}/threading.py", 1, 2),
        Frame("Thread._bootstrap", f"{library}/threading.py", 1, 2),
        Frame("run", "/srv/threading.py", 1, 2),
    )
    recording = with_edges()
    edge = Edge(Kind.CONVOY, Stack(frames), UNKNOWN_STACK, Tally(1, 1))
    seen = recording.observation
    changed = replace(seen, totals=replace(seen.totals, edges=(edge,)))

    data = _data(replace(recording, observation=changed))

    assert [0, 1, 1, 1, 1, 2, 2, 0] == [frame[3] for frame in data["frames"]]


def test_origins_go_by_what_the_user_calls_the_application() -> None:
    """
    Then everything else is a library's, but for the beginning of a thread.
    """
    recording = replace(with_edges(), application=Application(packages=("match",)))

    origins = {str(frame[0]): frame[3] for frame in _data(recording)["frames"]}

    assert (0, 1, 2) == (origins["Pattern.scan <café>"], origins["crunch"], origins["Thread.run"])


def test_a_frame_without_a_line_stands_at_its_first() -> None:
    """
    Only the function is known then.
    """
    edge = Edge(Kind.CONVOY, Stack((Frame("f", "a.py", 7),)), UNKNOWN_STACK, Tally(1, 1))
    recording = with_edges()
    seen = recording.observation
    changed = replace(seen, totals=replace(seen.totals, edges=(edge,)))

    assert [["f", 0, 7, 0, None]] == _data(replace(recording, observation=changed))["frames"]
