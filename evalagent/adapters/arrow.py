"""pyarrow, imported when it is first needed: most commands never do."""

from typing import Any

Table = Any
"""A pyarrow.Table; the package has no types."""
Array = Any
"""A pyarrow.Array or ChunkedArray."""


def arrow() -> Any:
    """The module pyarrow."""
    import pyarrow

    return pyarrow
