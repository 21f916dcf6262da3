"""What people call the states in which a thread keeps the GIL, and what helps against each."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from gilscope.model.moment.hold_state import HoldState, State
from gilscope.text.units import percent

__all__ = [
    "STATE_WORDS",
    "TellingState",
    "advice",
    "calls_words",
    "state_words",
    "telling_states",
    "why_in_short",
    "why_words",
]

STATE_WORDS = {
    State.PYTHON: "Python code",
    State.GC: "garbage collection",
    State.JIT: "JIT compilation",
    State.NATIVE: "C code",
    State.SYSCALL: "a system call",
    State.NO_CPU: "no CPU",
    State.PAGE_FAULT: "a page fault",
    State.UNKNOWN: "unknown",
}
"""In the order in which they are told."""

_ADVICE = {
    State.PYTHON: (
        "compute in another process, or in code that releases the GIL;",
        "a shorter sys.setswitchinterval() buys shorter waits with more switches.",
    ),
    State.GC: (
        "gc.freeze() once all is loaded, higher gc.set_threshold(), fewer objects that",
        "live long; gc.collect() where nobody waits.",
    ),
    State.JIT: (
        "warm it up before it gets requests; less code that is made as it runs (eval, exec);",
        "a higher threshold (pypy --jit threshold=5000), which compiles less and later.",
    ),
    State.NATIVE: (
        "release the GIL in that code (Py_BEGIN_ALLOW_THREADS, Cython's nogil), smaller",
        "pieces of work, or another process.",
    ),
    State.SYSCALL: (
        "make the call where the GIL is released: in Python's own functions, by",
        "ctypes.CDLL and not PyDLL, between Py_BEGIN_ALLOW_THREADS and its end.",
    ),
    State.NO_CPU: (
        "a higher CPU limit or none, fewer threads that compute beside it, no lower",
        "priority for the thread that holds the GIL.",
    ),
    State.PAGE_FAULT: ("more memory, no swap, and no mapped files on slow disks.",),
}
"""What helps, in lines."""

_PYPY = "pypy"
_PYPY_ADVICE = (
    "compute in another process. On PyPy the GIL is never asked for: the holder gives it",
    "away after some thousand bytecodes, and never in C code that it has called.",
)
"""The same against Python code, and C code, of PyPy."""
_PYPY_GC_ADVICE = (
    "fewer objects at a time; a larger nursery (PYPY_GC_NURSERY=16M) for fewer collections",
    "of the young; gc.disable(), and gc.collect_step() where nobody waits.",
)

_LEAST_SHARE = 0.05
_MUCH = 0.2
"""As the alerts have it: what is less is no answer."""
_MOST_TOLD = 3
_MOST_CALLS = 6

_SWITCH_INTERVAL = "sys.setswitchinterval"
TellingState = tuple[State, str, int]
"""A state, the detail that most of it has, and the time in it, ns."""


def telling_states(parts: Iterable[tuple[HoldState, int]]) -> tuple[TellingState, ...]:
    """Return *parts*, times by state, added up by kind of state, the most time first."""
    sums: Counter[State] = Counter()
    details: dict[State, Counter[str]] = defaultdict(Counter)
    for held, ns in parts:
        sums[held.state] += ns
        details[held.state][held.detail] += ns
    return tuple(
        (state, details[state].most_common(1)[0][0], ns) for state, ns in sums.most_common()
    )


def advice(
    states: Iterable[TellingState], runtime: str = "cpython", *, asks_holder: bool = True
) -> tuple[str, ...]:
    """Return what helps on *runtime* against the state that costs the most, in lines.

    Of Python code where nothing is known. Unless one *asks_holder*, there is no switch interval.
    """
    known = [state for state, _, ns in states if ns and state is not State.UNKNOWN]
    state = known[0] if known else State.PYTHON
    is_pypys = runtime == _PYPY and state in {State.PYTHON, State.NATIVE}
    of_state = _PYPY_GC_ADVICE if runtime == _PYPY and state is State.GC else _ADVICE[state]
    first, *others = _PYPY_ADVICE if is_pypys else of_state
    lines = (f"What helps: {first}", *others)
    if asks_holder or is_pypys:
        return lines
    *kept, last = (line for line in lines if _SWITCH_INTERVAL not in line)
    return *kept, f"{last.rstrip(';.')}."


def why_in_short(states: Iterable[TellingState]) -> str:
    """Return the state besides Python code that the holder was in most: ``≈ 74 % no CPU``.

    Empty where that is little.
    """
    known = [each for each in states if each[2]]
    whole_ns = sum(ns for _, _, ns in known)
    for state, _, ns in known:
        if state not in {State.PYTHON, State.UNKNOWN} and ns >= _MUCH * whole_ns:
            return f"≈ {percent(ns / whole_ns)} {STATE_WORDS[state]}"
    return ""


def why_words(states: Iterable[TellingState]) -> str:
    """Return why the holder kept the GIL: ``≈ 96 % garbage collection, 4 % no CPU``.

    Empty where it ran Python code, as one would think, or where that is not known.
    """
    known = [each for each in states if each[2]]
    whole_ns = sum(ns for _, _, ns in known)
    told = [each for each in known if each[2] >= _LEAST_SHARE * whole_ns][:_MOST_TOLD]
    if not told or {state for state, _, _ in told} <= {State.PYTHON, State.UNKNOWN}:
        return ""
    parts = (f"{percent(ns / whole_ns)} {state_words(state, detail)}" for state, detail, ns in told)
    return f"≈ {', '.join(parts)}"


def state_words(state: State, detail: str) -> str:
    """Return the state in words: ``C code (libz.so.1 deflate)``."""
    return f"{STATE_WORDS[state]} ({detail})" if detail else STATE_WORDS[state]


def calls_words(calls: Sequence[str]) -> str:
    """Return functions of C, each called by the next: ``deflate < compress (libz.so.1)``.

    The file stands behind the last function of it; many are told by the first few.
    """
    told = list(calls[:_MOST_CALLS])
    files = [call.partition(" ")[0] for call in told]
    words = []
    for number, (call, file) in enumerate(zip(told, files, strict=True)):
        name = call.partition(" ")[2]
        is_last = files[number + 1 : number + 2] != [file]
        words.append(f"{name} ({file})" if name and is_last else name or f"({file})")
    more = [] if len(calls) == len(told) else ["..."]
    return " < ".join([*words, *more])
