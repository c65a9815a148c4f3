"""Limits that the operating system keeps for a trial, set in the agent's own process just before it starts.

Stands alone: it runs in the agent's interpreter. Used by `evalagent_exec` and `evalagent_warm`.
"""

import contextlib
import os
import resource
import signal

GIB = 1 << 30
ADDRESS_SPACE = 16 * GIB
"""Generous, because threads and JITs reserve far more than they use; it stops a runaway, not a big program."""
FILE_SIZE = GIB
PROCESSES = 4096
"""Counts every process of the user, so it is not lower; root is not bound by it, and is left alone."""


def confine() -> None:
    """Lower this process's limits; a limit that is lower already stays."""
    wanted = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: FILE_SIZE, resource.RLIMIT_AS: ADDRESS_SPACE}
    if os.geteuid() != 0:
        wanted[resource.RLIMIT_NPROC] = PROCESSES
    for which, value in wanted.items():
        hard = resource.getrlimit(which)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (limit, limit))


def die_with_parent(parent: int) -> None:
    """Be killed when the process (on Linux: the thread) that started this one ends, even by SIGKILL."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)
