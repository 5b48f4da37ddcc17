"""Families of recurring tasks in worlds of others, and one task of them with the reference's calls.

A family is what one client does again and again: the same calls in the same order, with other values. Its
words are the world's own, never ours, so that two instances of one family say nothing alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import JsonValue

__all__ = ["FAMILIES", "WORLDS", "ForeignCall", "ForeignFamily", "ForeignTask", "WorldName", "in_turns"]

WorldName = Literal["bfcl", "tau-retail", "tau-airline", "textworld"]
WORLDS: Final[tuple[WorldName, ...]] = ("bfcl", "tau-retail", "tau-airline", "textworld")
ForeignCall = tuple[str, dict[str, JsonValue]]
"""The name of a tool, and what it is given."""


@dataclass(frozen=True, slots=True)
class ForeignFamily:
    """One family of a world."""

    id: str
    calls: tuple[str, ...] = ()
    """Names of the tools that a reference calls, in order. Empty: as many as most of the games need."""
    task: str = ""
    """Of TextWorld: the kind of game."""


@dataclass(frozen=True, slots=True)
class ForeignTask:
    """One instance of a family."""

    family: ForeignFamily
    id: str
    """Of the world's task, with its turn or seed: unique within the world."""
    words: str
    calls: tuple[ForeignCall, ...]
    """The reference's."""
    world_task: str
    seed: int | None = None
    before: tuple[tuple[ForeignCall, ...], ...] = ()
    """The reference's turns until this one."""
    after: tuple[tuple[ForeignCall, ...], ...] = ()
    """The reference's turns from this one on."""
    says: tuple[str, ...] = ()
    """What the answer has to say."""
    state: str = ""
    """Digest of the state that the reference leaves, of worlds that compare states themselves."""


FAMILIES: Final[Mapping[WorldName, tuple[ForeignFamily, ...]]] = {
    "bfcl": (
        ForeignFamily(
            "drive_distance",
            ("get_zipcode_based_on_city", "get_zipcode_based_on_city", "estimate_distance"),
        ),
        ForeignFamily("buy_at_price", ("get_stock_info", "place_order")),
        ForeignFamily("start_engine", ("lockDoors", "pressBrakePedal", "startEngine")),
        ForeignFamily("book_at_cost", ("get_flight_cost", "book_flight")),
        ForeignFamily("budget_in_currency", ("compute_exchange_rate", "set_budget_limit")),
        ForeignFamily("log_in_and_post", ("authenticate_twitter", "post_tweet")),
        ForeignFamily("log_in_and_file", ("ticket_login", "create_ticket")),
        ForeignFamily("log_in_and_send", ("message_login", "send_message")),
        ForeignFamily("file_in_folder", ("cd", "touch")),
        ForeignFamily("file_with_words", ("touch", "echo")),
    ),
    "tau-retail": (
        ForeignFamily("exchange", ("exchange_delivered_order_items",)),
        ForeignFamily("return", ("return_delivered_order_items",)),
        ForeignFamily(
            "look_and_exchange",
            (
                "find_user_id_by_name_zip",
                "get_user_details",
                "get_order_details",
                "get_product_details",
                "get_product_details",
                "exchange_delivered_order_items",
            ),
        ),
        ForeignFamily("new_address", ("modify_pending_order_address", "modify_pending_order_items")),
    ),
    "tau-airline": (
        ForeignFamily("book", ("book_reservation",)),
        ForeignFamily("change_flights", ("update_reservation_flights",)),
        ForeignFamily(
            "change_all",
            (
                "update_reservation_flights",
                "update_reservation_passengers",
                "update_reservation_baggages",
            ),
        ),
    ),
    "textworld": (
        ForeignFamily("supper", task="supper"),
        ForeignFamily("cooking", task="cooking"),
        ForeignFamily("coin", task="coin"),
        ForeignFamily("quest_2", task="quest-2"),
    ),
}
"""By API class (BFCL), intent (τ²-bench) and kind of game (TextWorld). τ²-bench's checker compares databases,
so that of its intents only those are here that change one."""


def in_turns(tasks: list[ForeignTask]) -> list[ForeignTask]:
    """Return the tasks as a stream: the first of each family, then the second of each, and so on."""
    seen: dict[str, int] = {}
    numbered: list[tuple[int, int, ForeignTask]] = []
    for place, task in enumerate(tasks):
        number = seen[task.family.id] = seen.get(task.family.id, 0) + 1
        numbered.append((number, place, task))
    return [task for _, _, task in sorted(numbered, key=lambda one: one[:2])]
