"""Says in one request of the SDK what a decision says. Pure: what it changes, it copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, cast

from agents import ModelSettings
from agents.models.fake_id import FAKE_RESPONSES_ID

from reasonblocks import _render as render
from reasonblocks.types import StepDecision

from ._items import Item, Items, get, is_call, is_message, kind

NOBODYS = {"model": ""}
"""With the SDK's own id for what no server knows: its Responses models send neither, its others ask for some id."""


def steered(instructions: str | None, items: Items, decision: StepDecision, *, tail: bool) -> tuple[str | None, Items]:
    """One call's instructions and input with its guidance: the last message with `tail`, else in the instructions."""
    guidance = decision.guidance
    base = render.place(instructions, "" if tail else guidance, decision.standing_rules, cache_control=False)
    if tail and guidance:
        items = [*items, user_message(guidance)]
    return cast("str | None", base), items


def without_foreign_reasoning(items: Items, is_foreign: Callable[[str], bool]) -> Items:
    """The items without the reasoning of other models, which only its author takes back.

    What followed it in the same answer loses its id: the server asks for the reasoning of an item that it knows.
    Reasoning with `provider_data` stays: the SDK itself sends it to nobody but its author.
    """
    kept: Items = []
    orphaned = False
    for item in items:
        if kind(item) == "reasoning":
            orphaned = not get(item, "provider_data") and is_foreign(str(get(item, "id") or ""))
            if orphaned:
                continue
        elif not is_message(item) and not is_call(item):
            orphaned = False
        kept.append(_unknown_to_the_server(item) if orphaned and isinstance(item, Mapping) else item)
    return kept if len(kept) < len(items) else items


def settings_for(given: ModelSettings, implied: ModelSettings, instead: ModelSettings) -> ModelSettings:
    """Settings that the SDK has filled in for one model (all that is `implied`) become those of another.

    It does the same for a `RunConfig.model`: what one model needs another may refuse.
    """
    names = [field.name for field in fields(implied) if getattr(implied, field.name) is not None]
    if any(getattr(given, name) != getattr(implied, name) for name in names):
        return given
    return replace(given, **{name: getattr(instead, name) for name in names}) if names else given


def reasoning_ids(output: Iterable[Item]) -> list[str]:
    """Of those whose author only we know."""
    found = (item for item in output if kind(item) == "reasoning" and not get(item, "provider_data"))
    return [str(id) for item in found if (id := get(item, "id"))]


def _unknown_to_the_server(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"provider_data": NOBODYS, **item, "id": FAKE_RESPONSES_ID}


def user_message(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}
