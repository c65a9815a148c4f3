"""What the desk can do: plain functions over the shop's SQLite database.

A refusal by the shop's rules comes back as `{"error": …}`; a database that is busy raises `sqlite3.OperationalError`.
"""

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

DATABASE = os.environ.get("DESK_DB", "world/desk.db")


def look_up_order(order_id: str) -> dict[str, object]:
    """One order by its number, with what was refunded on it so far."""
    return _order(order_id)


def find_customer(email: str) -> dict[str, object]:
    """The customer with this mail address."""
    rows = _read("SELECT * FROM customers WHERE email = ?", email)
    return rows[0] if rows else {"error": f"no customer has the address {email}"}


def list_orders(customer_id: str) -> list[dict[str, object]]:
    """A customer's orders, oldest first."""
    return _read("SELECT * FROM orders WHERE customer_id = ? ORDER BY placed_on, id", customer_id)


def cancel_order(order_id: str) -> dict[str, object]:
    """Cancel an order that was not shipped yet."""
    order = _order(order_id)
    if "error" in order:
        return order
    if order["status"] != "open":
        return {"error": f"order {order_id} is {order['status']} and cannot be cancelled"}
    _write("UPDATE orders SET status = 'cancelled', updated_at = ? WHERE id = ?", _now(), order_id)
    return {"order_id": order_id, "status": "cancelled"}


def refund(order_id: str, amount: float, reason: str) -> dict[str, object]:
    """Pay an amount in EUR back for an order."""
    if "error" in (order := _order(order_id)):
        return order
    _write(
        "INSERT INTO refunds (order_id, amount, reason, created_at) VALUES (?, ?, ?, ?)",
        order_id,
        amount,
        reason,
        _now(),
    )
    return {"order_id": order_id, "refunded": amount}


def change_address(customer_id: str, address: str) -> dict[str, object]:
    """Replace a customer's postal address."""
    changed = _write("UPDATE customers SET address = ? WHERE id = ?", address, customer_id)
    return (
        {"customer_id": customer_id, "address": address}
        if changed
        else {"error": f"there is no customer {customer_id}"}
    )


def send_mail(recipient: str, subject: str, body: str) -> dict[str, object]:
    """Put a mail to a customer into the outbox."""
    _write("INSERT INTO outbox (recipient, subject, body) VALUES (?, ?, ?)", recipient, subject, body)
    return {"queued": True, "recipient": recipient}


TOOLS = ("look_up_order", "find_customer", "list_orders", "cancel_order", "refund", "change_address", "send_mail")


def _order(order_id: str) -> dict[str, object]:
    rows = _read(
        "SELECT orders.*, customers.name, customers.email,"
        " (SELECT coalesce(sum(amount), 0) FROM refunds WHERE order_id = orders.id) AS refunded"
        " FROM orders JOIN customers ON customers.id = customer_id WHERE orders.id = ?",
        order_id,
    )
    return rows[0] if rows else {"error": f"there is no order {order_id}"}


def _connect() -> sqlite3.Connection:
    connection = sqlite3.connect(DATABASE, timeout=0.05)
    connection.row_factory = sqlite3.Row
    return connection


def _read(query: str, *values: object) -> list[dict[str, object]]:
    with closing(_connect()) as connection:
        return [dict(row) for row in connection.execute(query, values)]


def _write(statement: str, *values: object) -> int:
    with closing(_connect()) as connection, connection:
        return connection.execute(statement, values).rowcount


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
