"""Recordings made by hand to look at the HTML report: a large one, a huge one, a hostile one."""

from dataclasses import replace

from gilscope.model.gil import Edge, Recording, SlowDrop, Tally
from gilscope.model.kinds import Kind
from gilscope.model.stack import Frame, Stack, StackState
from support.recordings.gil import CRUNCHING, MS, SERVING, convoy, full_mode, histogram, thread

__all__ = ["EVIL", "deep", "hostile", "huge", "large"]

EVIL = '</script><img src=x onerror="window.evil = 1"><!--<script>\'&\u202egnp\ud800'
"""What a name would look like that wants to be more than a name."""

_THREADING = "/usr/lib/python3.11/threading.py"
_BOOTSTRAP = (
    Frame("Thread.run", _THREADING, 952, 975),
    Frame("Thread._bootstrap_inner", _THREADING, 1016, 1038),
    Frame("Thread._bootstrap", _THREADING, 972, 995),
)
_PACKAGES = "/srv/shop/.venv/lib/python3.11/site-packages"
_CALLS = (
    ("Order.verfügbarkeit_prüfen", "/srv/shop/orders/model.py"),
    ("JSONEncoder.iterencode", "/usr/lib/python3.11/json/encoder.py"),
    ("在庫を数える", "/srv/shop/lager/在庫.py"),
    ("Session._execute_internal.<locals>.<lambda>", f"{_PACKAGES}/sqlalchemy/orm/session.py"),
    ("compile", "/usr/lib/python3.11/re/__init__.py"),
    ("PriceRuleEngine.evaluate_all_rules_for_customer_group", "/srv/shop/prices/rules.py"),
    ("render", f"{_PACKAGES}/jinja2/environment.py"),
    ("<genexpr>", "/srv/shop/prices/rules.py"),
    ("mark", "/srv/shop/a.py"),
    ("LanguageAwareTokenizerWithASurprisinglyLongName.tokenize_and_normalise", "/srv/shop/nlp.py"),
)
_LIVES = (
    Frame("RequestHandler.handle_forever", "/srv/shop/server.py", 88, 97),
    Frame("_worker", "/usr/lib/python3.11/concurrent/futures/thread.py", 69, 83),
    Frame("Reindexer.run_until_stopped", "/srv/shop/search/reindex.py", 31, 40),
    Frame("push_metrics", "/srv/shop/telemetry.py", 12, 19),
    Frame("<module>", "/srv/shop/main.py", 1, 210),
)
_SOURCES = (
    "return self._encoder.encode(value, indent=None, sort_keys=True)",
    "total = sum(len(word) for word in self._words if word not in STOP_WORDS)",
    "for row in cursor.fetchmany(batch_size):",
    "body = sock.recv(65536)",
)


def _deep(number: int, depth: int, life: int) -> Stack:
    """Return a stack of *depth* calls above a thread's life; *number* chooses which."""
    calls = []
    for level in range(depth):
        function, file = _CALLS[(number * (level // 4 + 1) + level * 3) % len(_CALLS)]
        calls.append(Frame(function, file, 10 * level + 1, 10 * level + 4 + number % 3))
    outer = (_LIVES[life],) if _LIVES[life].function == "<module>" else (_LIVES[life], *_BOOTSTRAP)
    return Stack((*reversed(calls), *outer))


def large() -> Recording:
    """Return a minute in full mode of a server: 60 pairs of deep stacks, names from everywhere."""
    recording = full_mode()
    seen = recording.observation
    kinds = (Kind.CONVOY, Kind.PREEMPTION, Kind.BLOCKING_CALL)
    edges = []
    for number in range(150):
        waiter = _deep(number % 19, 3 + number % 11, number % 4)
        holder = _deep(number % 7 + 3, 5 + number * 5 % 17, (number * 3 + 1) % 5)
        if number % 23 == 5:
            holder = Stack((), StackState.NO_PYTHON)
        elif number % 23 == 11:
            holder = Stack((), StackState.UNKNOWN)
        elif number % 9 == 4:
            waiter = replace(waiter, state=StackState.TORN)
        elif number % 11 == 7:
            holder = replace(holder, frames=holder.frames[:-4], state=StackState.CUT)
        lost_ns = 9_000 * MS // (number + 1) + 137_911 * (number % 13)
        lost = Tally(lost_ns, 1 + lost_ns // (7 * MS))
        edges.append(Edge(kinds[number % 3], waiter, holder, lost))
    slow_drops = tuple(
        SlowDrop(_deep(number + 2, 6, number), Tally((900 - 200 * number) * MS, 31), 48 * MS)
        for number in range(3)
    )
    roles = [f"{life.function} ({life.file.rpartition('/')[2]}:88)" for life in _LIVES[:4]]
    by_kind = {
        kind: sum((edge.lost for edge in edges if edge.kind is kind), start=Tally())
        for kind in kinds
    }
    threads = tuple(
        replace(
            thread(number, role, {kind: _part(lost, number) for kind, lost in by_kind.items()}),
            held=Tally(9_000 * MS, 4_000),
        )
        for number, role in enumerate([*roles, "MainThread"])
    )
    lock = replace(
        seen.totals.gils[0],
        waits={
            cause: histogram(*(1000 * 3**power for power in range(1, 13) for _ in range(power * 9)))
            for cause in seen.totals.gils[0].waits
        },
    )
    totals = replace(
        seen.totals,
        threads=threads,
        gils=(lock,),
        edges=tuple(edges),
        slow_drops=slow_drops,
        observed_ns=60_000 * MS,
    )
    files = {frame.file for edge in edges for frame in (*edge.waiter.frames, *edge.holder.frames)}
    sources = {
        (file, line): _SOURCES[line % len(_SOURCES)] for file in files for line in range(1, 200, 2)
    }
    process = replace(seen.process, name="shop.server:main", python="3.11.2")
    return replace(
        recording,
        observation=replace(seen, process=process, totals=totals),
        duration_ns=60_000 * MS,
        sources=sources,
    )


def _part(whole: Tally, number: int) -> Tally:
    # Fifths, the first thread with what division leaves.
    rest = Tally(whole.ns % 5, whole.count % 5) if number == 0 else Tally()
    return Tally(whole.ns // 5, whole.count // 5) + rest


def huge(pairs: int = 20_000) -> Recording:
    """Return a recording with *pairs* edges, no two of which have a site in common."""
    recording = convoy()
    seen = recording.observation
    edges = tuple(
        Edge(
            Kind.PREEMPTION,
            Stack((Frame(f"wait_{number}", "/srv/made.py", number, number), *SERVING.frames)),
            Stack((Frame(f"hold_{number}", "/srv/made.py", number, number), *CRUNCHING.frames)),
            Tally((pairs - number) * 1000, 1),
        )
        for number in range(pairs)
    )
    return replace(recording, observation=replace(seen, totals=replace(seen.totals, edges=edges)))


def deep() -> Recording:
    """Return `convoy` with two holders: one costs 2 % and is 40 frames deep."""
    recording = convoy()
    seen = recording.observation
    well = Stack((*(Frame(f"level_{n}", "/srv/well.py", n, n) for n in range(40)), *_BOOTSTRAP))
    edges = (
        Edge(Kind.CONVOY, SERVING, CRUNCHING, Tally(980 * MS, 98)),
        Edge(Kind.CONVOY, CRUNCHING, well, Tally(20 * MS, 2)),
    )
    return replace(recording, observation=replace(seen, totals=replace(seen.totals, edges=edges)))


def hostile(name: str = EVIL) -> Recording:
    """Return a recording in which every text of the traced process is *name*."""
    recording = convoy()
    seen = recording.observation
    frame = Frame(name, name, 1, 2)
    edges = (Edge(Kind.CONVOY, Stack((frame, frame)), Stack((frame,)), Tally(MS, 1)),)
    totals = replace(
        seen.totals,
        threads=tuple(replace(one, role=name) for one in seen.totals.threads),
        edges=edges,
        slow_drops=(SlowDrop(Stack((frame, frame)), Tally(MS, 1), MS),),
        lost_events={name: 1},
    )
    process = replace(seen.process, name=name, python=name, build_id=name)
    return replace(
        recording,
        observation=replace(seen, process=process, totals=totals),
        sources={(name, 2): name},
    )
