"""Names of the system calls that have the same number on all processors."""

from types import MappingProxyType
from typing import Final

__all__ = ["COMMON_NAMES"]

_FIRST: Final = 424
_NAMES: Final = """
pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen
fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2
process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule
landlock_restrict_self memfd_secret process_mrelease futex_waitv set_mempolicy_home_node
"""

COMMON_NAMES: Final = MappingProxyType(dict(enumerate(_NAMES.split(), _FIRST)))
