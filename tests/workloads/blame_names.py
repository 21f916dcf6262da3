"""Code with names that are hard to tell, or that are gone before anybody asks for them.

Known answer: `edges` in the answers. Every wait lasts for about 12 ms, those of `fleeting` for 23.

* unusual: holders are `größe` in a file called `naïve 名前.py`, code that was executed without a
  file and is kept, a function from a zip archive, a lambda, and a class body. So is the waiter.
* fleeting: code is compiled, executed and dropped, time and again, each with a name of its own;
  much of the memory is used for the next one. Where a name is told, it is the right one.
"""

import os
import sys
import tempfile
import zipfile

from blame_stage import KEEPING, MS, End, Rounds, perform, play

HOLD_NS = 12 * MS
# Code is looked at again after 1 ms, and holders every 5 ms: 3 ms lie between two of these.
FLEETING_NS = 23 * MS
HOLD = KEEPING.blame_hold
FLEETING = 30

UNUSUAL = """
def größe(hold, rounds, ns):
    return hold(rounds.holds(), ns)
"""
ZIPPED = """


def kept_by_zip(hold, rounds, ns):
    return hold(rounds.holds(), ns)
"""
WITHOUT_FILE = compile(
    """
def in_no_file():
    hold(rounds.holds(), ns)

in_no_file()
hold(rounds.holds(), ns)
""",
    "<string>",
    "exec",
)
# As many lines above the code as its number says: names and lines differ.
SHORT_LIVED = """{lines}def fleeting_{number}():
    hold(rounds.holds(), ns)

fleeting_{number}()
"""


def import_unusual(folder: str) -> tuple:
    """Return a function of a file with a name that is not ASCII, and one of a zip archive."""
    with open(os.path.join(folder, "naïve 名前.py"), "w", encoding="utf-8") as file:
        file.write(UNUSUAL)
    archive = os.path.join(folder, "archive.zip")
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("zipped_module.py", ZIPPED)
    sys.path[:0] = [folder, archive]
    return __import__("naïve 名前").größe, __import__("zipped_module").kept_by_zip


def hold_unusual(rounds: "Rounds") -> None:
    with tempfile.TemporaryDirectory() as folder:
        by_file, by_zip = import_unusual(folder)
        by_file(HOLD, rounds, HOLD_NS)
        by_zip(HOLD, rounds, HOLD_NS)
        exec(WITHOUT_FILE, {"hold": HOLD, "rounds": rounds, "ns": HOLD_NS})  # noqa: S102
        hold_in_lambda = lambda: HOLD(rounds.holds(), HOLD_NS)  # noqa: E731 - holds here
        hold_in_lambda()

        class _Body:
            HOLD(rounds.holds(), HOLD_NS)  # holds here


def wait_in_lambda(end: "End") -> None:
    wait = lambda: KEEPING.blame_wait(end.waits())  # noqa: E731 - waits here
    list(iter(wait, 0))


def hold_fleeting(rounds: "Rounds") -> None:
    for number in range(FLEETING):
        source = SHORT_LIVED.format(number=number, lines="\n" * (number % 7))
        exec(source, {"hold": HOLD, "rounds": rounds, "ns": FLEETING_NS})  # noqa: S102


def wait_for_fleeting(end: "End") -> None:
    while KEEPING.blame_wait(end.waits()):  # waits here
        pass


if __name__ == "__main__":
    perform(
        {
            "unusual": lambda: play(Rounds(), hold_unusual, wait_in_lambda),
            "fleeting": lambda: play(Rounds(), hold_fleeting, wait_for_fleeting),
        }
    )
