"""Waits until followed files have changed: by notice of the kernel, or by the clock."""

import contextlib
import os
import select
import time
from collections.abc import Callable, Iterable

from gilscope.stm_log.follow.followed_file import FollowedFile, Identity
from gilscope.stm_log.follow.inotify import Inotify
from gilscope.values import dataclass

__all__ = ["Change", "Notice"]

_SWEEP_S = 5.0
"""How often everything is checked in any case: of what another host writes there is no notice."""
_SWEEP_WITHOUT_NOTICE_S = 1.0
_MOST_FOLDERS = 256


@dataclass(frozen=True, slots=True)
class Change:
    """What may have changed."""

    files: frozenset[Identity] | None
    """None: any of them."""
    has_names: bool
    """Files may have come, gone, or got other names."""


class Notice:
    """Tells when to look. Where the kernel grants no inotify, once a second."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """Tell by *say* if there is no notice from the kernel."""
        self._say = say
        self._files: dict[int, Identity] = {}
        self._folders: frozenset[int] = frozenset()
        self._sweep_at_s = 0.0
        self._wakening = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._inotify: Inotify | None = None
        try:
            self._inotify = Inotify()
        except OSError as error:
            self._do_without(error)

    def wait(self, timeout_s: float) -> Change:
        """Return what may have changed, as soon as that is so, and after *timeout_s* at the latest.

        The first time it is everything.
        """
        left_s = max(0.0, min(timeout_s, self._sweep_at_s - time.monotonic()))
        told: frozenset[int] | None = frozenset()
        ready = self._poll(left_s, has_files=True)
        if self._inotify is not None and self._inotify.fileno() in ready:
            told = self._inotify.changed()
        if told is None or time.monotonic() >= self._sweep_at_s:
            sweep_s = _SWEEP_WITHOUT_NOTICE_S if self._inotify is None else _SWEEP_S
            self._sweep_at_s = time.monotonic() + sweep_s
            return Change(None, has_names=True)
        files = frozenset(self._files[watch] for watch in told if watch in self._files)
        return Change(files, has_names=bool(told & self._folders))

    def rest(self, time_s: float) -> None:
        """Wait for *time_s* or until `wake`, whatever changes meanwhile."""
        self._poll(time_s, has_files=False)

    def wake(self) -> None:
        """End the present wait, or else the next one; may be called from a signal handler."""
        os.eventfd_write(self._wakening, 1)

    def _poll(self, time_s: float, *, has_files: bool) -> set[int]:
        poll = select.poll()
        poll.register(self._wakening, select.POLLIN)
        if has_files and self._inotify is not None:
            poll.register(self._inotify, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(time_s * 1000)}
        if self._wakening in ready:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._wakening)
        return ready

    def watch_folders(self, folders: Iterable[str]) -> None:
        """Watch which names there are in *folders*, and no longer in others."""
        watches = set()
        for folder in list(folders)[:_MOST_FOLDERS]:
            if self._inotify is None:
                return
            try:
                watches.add(self._inotify.watch_folder(folder))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._do_without(error)
        if self._inotify is not None:
            for gone in self._folders - watches:
                self._inotify.forget(gone)
            self._folders = frozenset(watches)

    def watch(self, file: FollowedFile) -> None:
        """Watch the open *file*."""
        if self._inotify is None:
            return
        try:
            file.watch = self._inotify.watch_file(file.fileno())
            self._files[file.watch] = file.identity
        except OSError as error:
            self._do_without(error)

    def forget(self, file: FollowedFile) -> None:
        """Watch *file* no longer; it may be watched or not."""
        if file.watch in self._files and self._inotify is not None:
            del self._files[file.watch]
            self._inotify.forget(file.watch)

    def close(self) -> None:
        """Give everything up."""
        if self._inotify is not None:
            self._inotify.close()
        os.close(self._wakening)

    def _do_without(self, error: OSError) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
        self._files, self._folders = {}, frozenset()
        self._say(
            f"the kernel gives no notice of changes (inotify: {error.strerror}), so the logs are "
            "checked once a second; the sysctls fs.inotify.max_user_instances and "
            "fs.inotify.max_user_watches set the limits"
        )
