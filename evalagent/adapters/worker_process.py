"""A process that does one kind of work on the pieces it is sent, until nobody sends any more.

It is started anew and not forked, since a copy would share the parent's database, and it does not run the parent's
main module again as `multiprocessing` would: a script without a guard would start itself without end.
"""

import gc
import signal
import socket
import sys

from evalagent.adapters.channels import Channel


def serve(descriptor: int) -> None:
    """Take the module path and the work, then piece after piece; answer each with (True, result) or (False, error)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told too, and ends this by closing the channel
    # pyarrow takes numpy along where it is there; it needs none here, and starts in a third of the time without
    sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]
    gc.disable()  # what a piece makes goes when it is done; to look for rings meanwhile takes a third of the time
    with socket.socket(fileno=descriptor) as end:
        parent = Channel(end)
        try:
            sys.path[:] = parent.receive()
            work = parent.receive()
            while True:
                answer: tuple[bool, object]
                try:
                    answer = True, work(parent.receive())
                except EOFError:
                    return
                except BaseException as error:  # noqa: BLE001 - it is the parent that has to raise it
                    answer = False, error
                try:
                    parent.send(answer)
                except OSError:
                    return
                except Exception as error:  # noqa: BLE001 - not everything can be sent
                    parent.send((False, TypeError(f"{type(answer[1]).__name__} cannot be sent: {error}")))
                del answer
                gc.collect()
                if not gc.get_freeze_count():
                    gc.freeze()  # the modules, which the first piece has imported: no ring of a piece is among them
        except (EOFError, OSError):
            return


if __name__ == "__main__":
    serve(int(sys.argv[1]))
