"""A session that does not know its id yet is a session as any other."""

from __future__ import annotations

from agents import SessionABC
from agents.items import TResponseInputItem

from reasonblocks_openai_agents import steering_of
from tests.openai_agents.world import every_way, fixer, in_turn, looks, place, steering


class Unborn(SessionABC):
    """Like the SDK's own of a conversation, whose id comes with its first request."""

    session_settings = None

    def __init__(self) -> None:
        self.items: list[TResponseInputItem] = []

    @property
    def session_id(self) -> str:  # type: ignore[override]  # as in the SDK's own
        raise ValueError("Session ID not yet available.")

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        return list(self.items)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        self.items += items

    async def pop_item(self) -> TResponseInputItem | None:
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        self.items.clear()


@every_way
def test_a_session_without_an_id_is_steered(way: str) -> None:
    with place(in_turn(*looks(1)), way) as at:
        result = at.run(steering(), fixer(), session=Unborn())
        assert steering_of(result).outcome == "success"
