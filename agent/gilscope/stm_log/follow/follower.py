"""Follows STM logs that grow, are emptied, renamed and removed, and new ones that appear."""

import contextlib
import errno
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from gilscope.model.stm_log import LogFile
from gilscope.stm_log.follow.followed_file import PIECE_BYTES, FollowedFile, Identity
from gilscope.stm_log.follow.log_groups import Family, FileState, LogGroups
from gilscope.stm_log.follow.patterns import folders_of, paths_of
from gilscope.stm_log.follow.rewritten import Step
from gilscope.stm_log.follow.watcher import Notice
from gilscope.stm_log.log_file import NoLogFileError, open_log_file
from gilscope.stm_log.sums import FollowedLog
from gilscope.text.printable import printable

__all__ = ["MOST_FILES", "Follower"]

MOST_FILES = 256
"""That are followed at a time. Each takes some hundreds of kilobytes, and 20 MiB at most."""

_PIECES_IN_TURN = 16
"""Of one file, before it is another one's turn."""
_REST_S = 0.05
"""After something was read: to take each block of 4096 bytes by itself would cost more."""
_LONGEST_TURN_S = 1.0
_LINGER_NS = 60_000_000_000
"""A file that has not grown for so long may be given up if there is a reason to."""
_MOST_ENDED = 64


class Follower:
    """Reads the logs that *patterns* mean. One thread calls `advance`, any may ask for `logs`."""

    def __init__(
        self, patterns: Sequence[str], say: Callable[[str], None], *, keeps_ended: bool = False
    ) -> None:
        """Tell by *say* what goes wrong; with *keeps_ended* keep logs as a whole for `finish`."""
        self._patterns = tuple(patterns)
        self._say = say
        self._keeps_ended = keeps_ended
        self._ended: list[LogFile] = []
        self._turn = threading.RLock()
        self._files: dict[Identity, FollowedFile] = {}
        self._families = LogGroups()
        self._family_of: dict[Identity, Family] = {}
        self._given_up: dict[Identity, int] = {}
        """With the sizes that they had."""
        self._refused: dict[str, object] = {}
        """By path, with the fact that was the reason, so that it is said once."""
        self._behind: dict[Identity, None] = {}
        """In the order in which they are to be read on."""
        self._piece = memoryview(bytearray(PIECE_BYTES))
        self._notice = Notice(say)
        self._due_s = math.inf
        """When reading is to end, as time.monotonic has it."""

    def advance(self, timeout_s: float) -> bool:
        """Wait for a change, at most *timeout_s* or until `wake`, and take in what has changed.

        Return whether there was anything to read.
        """
        change = self._notice.wait(0 if self._behind else timeout_s)
        if change.has_names:
            self._find()
        due = dict.fromkeys((*self._behind, *(change.files or ())))
        if change.files is None:
            due |= dict.fromkeys(self._files)
        if change.has_names:
            # What has lost its name is read to its end, and closed.
            nameless = [each for each, file in self._files.items() if not file.has_name]
            due |= dict.fromkeys(nameless)
        if self._read(due) and not self._behind:
            self._notice.rest(min(_REST_S, timeout_s))
        return change.has_names or bool(due)

    def catch_up(self) -> None:
        """Read everything that is there now and no more; less if `hurry` is called."""
        self._find()
        with self._turn:
            ends = {identity: file.measure() for identity, file in self._files.items()}
        wanted = set(ends)
        while wanted:
            if time.monotonic() >= self._due_s:
                self._say_unread(ends)
                return
            self._read(wanted)
            wanted = {
                each
                for each in wanted & self._behind.keys()
                if self._files[each].position < ends[each]
            }

    def _say_unread(self, ends: Mapping[Identity, int]) -> None:
        for identity, end in ends.items():
            file = self._files.get(identity)
            if file is not None and not file.is_refused and file.position < end:
                left = end - file.position
                self._say(printable(f"{left} bytes of {file.path} were not read before the end"))

    def hurry(self, time_s: float) -> None:
        """Let reading come to its end within *time_s*; may be called from a signal handler."""
        self._due_s = time.monotonic() + time_s
        self.wake()

    def logs(self) -> tuple[FollowedLog, ...]:
        """Return what is known of each log, in the order in which they occurred."""
        with self._turn:
            states: dict[str, list[FileState]] = {}
            for identity, file in self._files.items():
                if not file.is_refused:
                    size = file.measure()
                    state = FileState(size, file.lag_bytes, file.sums())
                    states.setdefault(self._family_of[identity].name, []).append(state)
            return tuple(
                family.followed(states.get(family.name, ())) for family in self._families.all()
            )

    def finish(self) -> tuple[LogFile, ...]:
        """End all logs and return them, with those that had ended before: the last few of each."""
        with self._turn:
            for file in list(self._files.values()):
                self._let_go(file)
            return tuple(self._ended)

    def wake(self) -> None:
        """End the present wait; may be called from a signal handler."""
        self._notice.wake()

    def close(self) -> None:
        """Give everything up; no other method may be called any more."""
        self.finish()
        self._notice.close()

    # Which files there are.

    def _find(self) -> None:
        # Before names are looked for: what comes in between is found twice, and not never.
        self._notice.watch_folders(folders_of(self._patterns))
        found: dict[Identity, tuple[str, int]] = {}
        paths = paths_of(self._patterns)
        self._refused = {path: self._refused[path] for path in paths if path in self._refused}
        for path in paths:
            try:
                status = Path(path).stat()
            except OSError as error:
                self._refuse(path, error.errno, "unreadable", error.strerror)
                continue
            found.setdefault((status.st_dev, status.st_ino), (path, status.st_size))
        with self._turn:
            for identity, file in self._files.items():
                file.has_name = identity in found
            kept = {each: size for each, size in self._given_up.items() if each in found}
            self._given_up = kept
        for identity, (path, size) in found.items():
            if identity not in self._files:
                self._take_up(identity, path, size)

    def _take_up(self, identity: Identity, path: str, size: int) -> None:
        if identity in self._given_up:
            if size != self._given_up[identity]:
                self._refuse(path, identity, "crowded", "it was given up, and has grown since")
            return
        if len(self._files) >= MOST_FILES and not self._make_room():
            self._refuse(path, identity, "crowded", f"{MOST_FILES} others are followed")
            return
        try:
            descriptor, status = open_log_file(path, takes_pipes=False)
        except FileNotFoundError:
            return  # gone again
        except (NoLogFileError, IsADirectoryError):
            self._refuse(path, identity, "not_a_log", "it is no regular file")
            return
        except OSError as error:
            self._refuse(path, (identity, error.errno), "unreadable", error.strerror)
            return
        file = FollowedFile(path, descriptor, status)
        with self._turn:
            if file.identity in self._files:  # another one has taken the name meanwhile
                file.close()
                return
            self._refused.pop(path, None)
            self._files[file.identity] = file
            self._family_of[file.identity] = self._families.of(path)
        self._behind[file.identity] = None
        self._notice.watch(file)

    def _make_room(self) -> bool:
        """Give up the file that has been quiet for the longest, if there is one."""
        quiet = min(self._files.values(), key=lambda file: file.grew_ns)
        quiet.measure()
        if quiet.lag_bytes or time.monotonic_ns() - quiet.grew_ns < _LINGER_NS:
            return False
        self._given_up[quiet.identity] = quiet.size
        self._let_go(quiet)
        return True

    def _refuse(self, path: str, fact: object, reason: str, words: str | None) -> None:
        if fact == errno.ENOENT:
            return  # gone again
        if self._refused.get(path) != fact:
            self._refused[path] = fact
            with self._turn:
                self._note(self._families.of(path), reason, f"{path} is not read: {words}")

    def _note(self, family: Family, reason: str, words: str) -> None:
        # Names of files may be anything.
        family.note(reason, printable(words))
        self._say(printable(words))

    # What is in them.

    def _read(self, identities: Iterable[Identity]) -> bool:
        """Read on in each of the files, for a bounded time, and return whether there was any."""
        has_read = False
        due = list(identities)
        ends_s = min(time.monotonic() + _LONGEST_TURN_S, self._due_s)
        for number, identity in enumerate(due):
            if time.monotonic() >= ends_s:
                self._behind = {**dict.fromkeys(due[number:]), **self._behind}
                break
            self._behind.pop(identity, None)
            file = self._files.get(identity)
            if file is None:
                continue
            try:
                has_read |= self._read_file(file)
            except OSError as error:
                with self._turn:
                    words = f"{file.path} is not read any more: {error.strerror}"
                    self._note(self._family_of[identity], "unreadable", words)
                    self._let_go(file)
        return has_read

    def _read_file(self, file: FollowedFile) -> bool:
        step = self._step(file)
        count = 0
        if step in (Step.READ, Step.REWIND):
            count = self._take_pieces(file)
        if count and file.lag_bytes:
            self._behind[file.identity] = None
        elif not file.has_name and self._is_over(file):
            with self._turn:
                self._let_go(file)
        return count > 0

    def _step(self, file: FollowedFile) -> Step:
        with self._turn:
            was_refused = file.is_refused
            step = file.look()
            if step is Step.BEGIN:
                self._keep(file, self._family_of[file.identity])
                step = file.look()
            if file.is_refused and not was_refused:
                words = f"{file.path} is not read: it does not begin as an STM log does"
                self._note(self._family_of[file.identity], "not_a_log", words)
            return step

    def _take_pieces(self, file: FollowedFile) -> int:
        family = self._family_of[file.identity]
        taken = 0
        for _ in range(_PIECES_IN_TURN):
            # Whoever asks for the sums does not wait for more than a piece.
            with self._turn:
                count = file.read(self._piece)
                family.read_bytes += count
            taken += count
            if count < PIECE_BYTES:
                break
        return taken

    @staticmethod
    def _is_over(file: FollowedFile) -> bool:
        # A file that was renamed keeps its writer, who may continue for a while.
        return not file.links or time.monotonic_ns() - file.grew_ns >= _LINGER_NS

    def _let_go(self, file: FollowedFile) -> None:
        self._notice.forget(file)
        self._behind.pop(file.identity, None)
        with self._turn, contextlib.closing(file):
            del self._files[file.identity]
            self._keep(file, self._family_of.pop(file.identity))

    def _keep(self, file: FollowedFile, family: Family) -> None:
        ended = file.end_log()
        if ended is None:
            return
        log, sums = ended
        family.keep(sums)
        if log.cut_tail_bytes:
            family.errors["cut_record"] += 1
        if self._keeps_ended:
            self._ended = [*self._ended, log][-_MOST_ENDED:]
