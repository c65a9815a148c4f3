"""The garbage collector kept still while traces are built."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Without looking for rings of references until the block ends: building makes none, and over a million values that
    all stay the search takes up to a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
