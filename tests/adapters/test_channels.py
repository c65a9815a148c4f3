"""What goes through a channel arrives equal, however large it is, and its end is told."""

import pickle
import socket
import threading

import pyarrow as pa
import pytest

from evalagent.adapters.channels import Channel


def sent(*values: object) -> list[object]:
    left, right = socket.socketpair()
    giver, taker = Channel(left), Channel(right)
    thread = threading.Thread(target=lambda: [giver.send(value) for value in values])
    thread.start()
    found = [taker.receive() for _ in values]
    thread.join()
    giver.close()
    with pytest.raises(EOFError):
        taker.receive()
    taker.close()
    return found


def test_values_arrive_equal_and_in_order() -> None:
    table = pa.table({"text": ["a", None, "ü" * 3_000_000], "number": [1, 2, None]})
    values = [None, b"", b"x" * 5_000_000, table, {"parts": [table, (1, "two")]}]
    assert sent(*values) == values


def test_what_cannot_be_sent_leaves_the_channel_as_it_was() -> None:
    left, right = socket.socketpair()
    giver, taker = Channel(left), Channel(right)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        giver.send(lambda: None)
    giver.send("next")
    assert taker.receive() == "next"
    giver.close()
    taker.close()


def test_a_value_that_breaks_off_is_the_end() -> None:
    left, right = socket.socketpair()
    left.sendall((1).to_bytes(8, "little") + (100).to_bytes(8, "little") + b"half")
    left.close()
    taker = Channel(right)
    with pytest.raises(EOFError):
        taker.receive()
    taker.close()
