"""What a competent desk does next, told from the letter and from what the tools said so far."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WRITES = ("cancel_order", "refund", "change_address")


@dataclass(frozen=True)
class Request:
    """A letter as understood."""

    wants: frozenset[str]
    """Of cancel, refund, move, status."""
    order_id: str | None = None
    email: str | None = None
    address: str | None = None
    half: bool = False


@dataclass(frozen=True)
class Done:
    """One tool call with what came back; a list result is kept as such."""

    tool: str
    arguments: Mapping[str, Any]
    result: Any

    @property
    def error(self) -> str | None:
        return str(self.result["error"]) if isinstance(self.result, dict) and "error" in self.result else None


@dataclass(frozen=True)
class Move:
    """The model's next message: words, and perhaps one tool call."""

    text: str
    tool: str | None = None
    arguments: Mapping[str, Any] = ()  # type: ignore[assignment]


def read(letter: str) -> Request:
    """What a letter asks for."""
    lower = letter.lower()
    words = {"cancel": "cancel", "refund": "refund", "money back": "refund", "moved": "move", "where is": "status"}
    order, email = re.search(r"\bO-\d{4}\b", letter), re.search(r"[\w.]+@[\w.]+\w", letter)
    address = re.search(r"address: (.+)$", letter)
    return Request(
        wants=frozenset(want for word, want in words.items() if word in lower),
        order_id=order[0] if order else None,
        email=email[0] if email else None,
        address=address[1] if address else None,
        half="half" in lower,
    )


def next_move(request: Request, done: tuple[Done, ...]) -> Move:
    """One step towards what was asked for; an answer without a tool call ends the conversation."""
    if done and (error := done[-1].error):
        return _after_error(done, error)
    customer, order = _found(done, "find_customer"), _order(request, done)
    if order is None and customer is None:
        if request.order_id:
            return Move(f"I will look up {request.order_id}.", "look_up_order", {"order_id": request.order_id})
        if request.email:
            return Move("Let me find your account.", "find_customer", {"email": request.email})
        return Move("Please tell me your order number or the mail address of your account.")
    if "move" in request.wants and customer:
        return _move_house(request, done, customer)
    if order is None:
        orders = _found(done, "list_orders")
        if orders is None:
            return Move("Let me see your orders.", "list_orders", {"customer_id": customer["id"]})
        if not orders:
            return Move("There is no order on your account.")
        return Move("I will look at the latest one.", "look_up_order", {"order_id": orders[-1]["id"]})
    return _serve(request, done, order)


def _serve(request: Request, done: tuple[Done, ...], order: Mapping[str, Any]) -> Move:
    number, paid = order["id"], float(order["refunded"])
    cancelled, refunded = _found(done, "cancel_order"), _found(done, "refund")
    if "cancel" in request.wants and cancelled is None:
        if order["status"] != "open":
            return Move(f"Order {number} is {order['status']}, so it cannot be cancelled any more. I changed nothing.")
        return Move(f"{number} is still open; I am cancelling it.", "cancel_order", {"order_id": number})
    if "refund" in request.wants and refunded is None:
        due = order["amount"] / (2 if request.half else 1)
        if paid + due > order["amount"]:
            return Move(f"For order {number} we have refunded {paid:.2f} EUR already, so nothing more is due.")
        return Move("", "refund", {"order_id": number, "amount": due, "reason": "customer's letter"})
    if cancelled is None and refunded is None:
        return Move(
            f"Your order {number} ({order['item']}) is {order['status']}; last news of {order['updated_at'][:10]}."
        )
    parts = [f"cancelled order {number}"] if cancelled else []
    if refunded:
        parts.append(f"refunded {float(str(refunded['refunded']).split()[0]):.2f} EUR for order {number}")
    what = "We have " + " and ".join(parts) + "."
    if _found(done, "send_mail") is None:
        mail = {"recipient": order["email"], "subject": f"Your order {number}", "body": f"Dear {order['name']}, {what}"}
        return Move("", "send_mail", mail)
    return Move(f"{what} A confirmation is on its way to {order['email']}.")


def _move_house(request: Request, done: tuple[Done, ...], customer: Mapping[str, Any]) -> Move:
    if _found(done, "change_address") is None:
        change = {"customer_id": customer["id"], "address": request.address or ""}
        return Move("I am changing your address.", "change_address", change)
    what = f"Your address is now {request.address}."
    if _found(done, "send_mail") is None:
        mail = {
            "recipient": customer["email"],
            "subject": "Your new address",
            "body": f"Dear {customer['name']}, {what}",
        }
        return Move("", "send_mail", mail)
    return Move(f"{what} A confirmation is on its way to {customer['email']}.")


def _after_error(done: tuple[Done, ...], error: str) -> Move:
    last = done[-1]
    tries = sum(1 for call in done if (call.tool, call.arguments) == (last.tool, last.arguments))
    if "locked" in error and tries < 2:
        return Move("The database was busy; I try once more.", last.tool, last.arguments)
    return Move(f"I am sorry, I could not do that: {error}.")


def _order(request: Request, done: tuple[Done, ...]) -> Mapping[str, Any] | None:
    looked_up: Mapping[str, Any] | None = _found(done, "look_up_order")
    return looked_up


def _found(done: tuple[Done, ...], tool: str) -> Any:
    """What the last call of a tool that worked gave back; None if none did."""
    return next((call.result for call in reversed(done) if call.tool == tool and call.error is None), None)
