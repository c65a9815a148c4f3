"""A process that does one kind of work on the pieces it is sent, until nobody sends any more.

It is started anew and not forked, since a copy would share the parent's database, and it does not run the parent's
main module again as `multiprocessing` would: a script without a guard would start itself without end.
"""

import gc
import pickle
import signal
import sys
from multiprocessing.connection import Connection


def serve(descriptor: int) -> None:
    """Take the module path and the work, then piece after piece; answer each with (True, result) or (False, error)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told too, and ends this by closing the pipe
    gc.disable()  # what a piece makes goes when it is done; to look for rings meanwhile takes a third of the time
    with Connection(descriptor) as parent:
        try:
            sys.path[:] = pickle.loads(parent.recv_bytes())  # noqa: S301 - from our own parent
            work = pickle.loads(parent.recv_bytes())  # noqa: S301
            while True:
                answer: tuple[bool, object]
                try:
                    answer = True, work(pickle.loads(parent.recv_bytes()))  # noqa: S301
                except EOFError:
                    return
                except BaseException as error:  # noqa: BLE001 - it is the parent that has to raise it
                    answer = False, error
                try:
                    told = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
                except Exception as error:  # noqa: BLE001 - not everything can be sent
                    told = pickle.dumps((False, TypeError(f"{type(answer[1]).__name__} cannot be sent: {error}")))
                parent.send_bytes(told)
                del answer, told
                gc.collect()
        except (EOFError, OSError):
            return


if __name__ == "__main__":
    serve(int(sys.argv[1]))
