"""`python -I -S evalagent_exec.py PARENT STATUS_FD PROGRAM ARGUMENTS…`: becomes the agent, within its limits.

A program of its own, because code between fork and exec is not safe in a process that has threads. What keeps the agent
from starting is written to STATUS_FD, which closes by itself when it does start.
"""

import os
import signal
import sys

sys.path.insert(0, __file__.rpartition("/")[0])

import evalagent_limits  # type: ignore[import-not-found]


def main() -> None:
    parent, status, program, arguments = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[3:]
    os.set_inheritable(status, False)
    # What starts us may ignore these (a shell's background job does), and the agent would inherit that.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    evalagent_limits.die_with_parent(parent)
    evalagent_limits.confine()
    try:
        os.execvp(program, arguments)  # noqa: S606 starting the agent is the purpose
    except OSError as error:
        os.write(status, f"{program}: {error.strerror}".encode())
        os._exit(126)


main()
