"""The ways in which the scripted desk goes wrong, and in which trials it does.

| fault | what the desk does | the trial |
|---|---|---|
| wrong_order | acts on a neighbouring order number | fails |
| second_refund | pays back what was paid back already | fails |
| amount_text | sends the amount as text | fails |
| false_success | a call failed, and it says that all is done | fails |
| loop | asks the same question again and again | fails |
| gives_up | has all it needs and does nothing | fails |
| busy | meets a locked database, tries again, gets through | passes |
"""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from support_desk.policy import WRITES, Done, Move, Request

Fault = Literal["wrong_order", "second_refund", "amount_text", "false_success", "loop", "gives_up", "busy"]
FATAL: tuple[Fault, ...] = ("wrong_order", "second_refund", "amount_text", "false_success", "loop", "gives_up")
PRONE = (0.0, 0.0, 0.25, 0.5, 0.75)
"""A case's chance that a trial of it goes wrong is one of these."""


def draw(seed: int, case_id: str, trial: int) -> Fault | None:
    """The fault of one trial; it takes effect only where the case gives it an occasion."""
    prone = random.Random(f"{seed}/{case_id}").choice(PRONE)
    dice = random.Random(f"{seed}/{case_id}/{trial}")
    if dice.random() < prone:
        return dice.choice(FATAL)
    return "busy" if dice.random() < 0.15 else None


Policy = Callable[[Request, tuple[Done, ...]], Move]


def spoil(fault: Fault | None, request: Request, done: tuple[Done, ...], policy: Policy) -> tuple[Move, bool, bool]:
    """The policy's move as the fault bends it; whether it was bent; whether the database is to be locked for it."""
    if fault == "wrong_order" and request.order_id:
        bent = replace(request, order_id=_neighbour(request.order_id))
        return policy(bent, done), True, False
    move = policy(request, done)
    if fault == "wrong_order" and done and done[-1].tool == "list_orders" and len(done[-1].result) > 1:
        return replace(move, arguments={"order_id": done[-1].result[-2]["id"]}), True, False
    if fault == "loop" and 0 < len(done) < 10 and done[0].error is None:
        return Move("Let me check that.", done[0].tool, done[0].arguments), True, False
    if fault == "second_refund" and _pays_twice(done, move):
        return _refund_again(done), True, False
    if fault == "amount_text" and move.tool == "refund":
        return replace(move, arguments={**move.arguments, "amount": f"{move.arguments['amount']:.2f} EUR"}), True, False
    if fault == "gives_up" and move.tool in WRITES:
        return Move("I am sorry, I cannot help with this. Please call us between nine and five."), True, False
    if fault == "false_success":
        return _claim(request, done, move)
    if fault == "busy" and not done:
        return move, move.tool is not None, move.tool is not None
    return move, False, False


def _claim(request: Request, done: tuple[Done, ...], move: Move) -> tuple[Move, bool, bool]:
    """A write meets a locked database, or a cancellation that the shop refuses, and is reported as done."""
    if done and done[-1].tool in WRITES and done[-1].error:
        return Move("All done: what you asked for has been carried out. Is there anything else?"), True, False
    if move.tool in WRITES:
        return move, False, True
    if move.tool is None and "cancel" in request.wants and len(done) == 1 and done[0].error is None:
        return Move("I am cancelling it.", "cancel_order", {"order_id": done[0].result["id"]}), False, False
    return move, False, False


def _pays_twice(done: tuple[Done, ...], move: Move) -> bool:
    refunds = sum(call.tool == "refund" for call in done)
    looked_up = done[-1].result if done and done[-1].tool == "look_up_order" and not done[-1].error else None
    return (refunds == 1 and move.tool == "send_mail") or bool(
        looked_up and move.tool is None and looked_up["refunded"]
    )


def _refund_again(done: tuple[Done, ...]) -> Move:
    paid = next((call for call in done if call.tool == "refund"), None)
    if paid:
        return Move("", "refund", paid.arguments)
    order = done[-1].result
    return Move("", "refund", {"order_id": order["id"], "amount": order["amount"], "reason": "customer's letter"})


def _neighbour(order_id: str) -> str:
    """The number with its last digit one off: of every order in the shop there is one."""
    number = int(order_id[2:])
    return f"O-{number - 1 if number % 2 == 0 else number + 1:04d}"
