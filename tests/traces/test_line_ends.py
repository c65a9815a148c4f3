"""The count of line ends is that of line feeds, whatever else stands in the text."""

from hypothesis import given
from hypothesis import strategies as st

from evalagent.traces.line_ends import line_ends


@given(st.binary(max_size=200) | st.text(alphabet="\n\r a", max_size=200).map(str.encode))
def test_every_line_feed_ends_a_line(text: bytes) -> None:
    assert line_ends(text) == text.count(b"\n")
