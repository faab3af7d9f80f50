"""Applies a decision to one request of the SDK. Pure: it changes copies only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, cast

from agents import ModelSettings
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai.types.shared import Reasoning

from reasonblocks import render
from reasonblocks.messages import get
from reasonblocks.messages.openai import Item, Items, is_call, is_message, kind
from reasonblocks.types import StepDecision

NO_MODEL = {"model": ""}
"""The `provider_data` beside the SDK's fake id: its Responses models send neither, its other models need some id."""


def steer_call(instructions: str | None, items: Items, decision: StepDecision) -> tuple[str | None, Items]:
    """Return a call's instructions and input with its guidance, placed as the decision says."""
    system, input_items = render.steered_request(decision, instructions, items)
    in_input = decision.guidance and decision.placement != "system"
    return cast("str | None", system), cast("Items", input_items) if in_input else items


def unsteer_items(instructions: str | None, items: Items, decision: StepDecision) -> tuple[str | None, Items]:
    """Return the instructions without guidance, and what replaces the last item of the steered input: one, or none."""
    rules = render.place(instructions, "", decision.standing_rules, cache_control=False)
    own = decision.placement == "message" and len(render.with_message(items, decision.guidance)) > len(items)
    return cast("str | None", rules), [] if own else [*items[-1:]]


def without_foreign_reasoning(items: Items, is_foreign: Callable[[str], bool]) -> Items:
    """Return the items without the reasoning of other models, which only its author accepts back.

    The items after it in the same answer lose their ids, since the server demands the reasoning of an item it knows.
    Reasoning with `provider_data` stays: the SDK itself sends it to its author only.
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
        kept.append(_without_id(item) if orphaned and isinstance(item, Mapping) else item)
    return kept if len(kept) < len(items) else items


def settings_for(given: ModelSettings, implied: ModelSettings, instead: ModelSettings) -> ModelSettings:
    """Replace the settings that the SDK filled in for one model (those that are `implied`) with another's.

    The SDK does the same for a `RunConfig.model`, because one model may refuse a setting that another needs.
    """
    names = [field.name for field in fields(implied) if getattr(implied, field.name) is not None]
    if any(getattr(given, name) != getattr(implied, name) for name in names):
        return given
    return replace(given, **{name: getattr(instead, name) for name in names}) if names else given


def with_effort(given: ModelSettings, effort: str) -> ModelSettings:
    """Return the settings with another reasoning effort. Raises `ValueError` for a word that the SDK does not know."""
    own = given.reasoning.model_dump(exclude_unset=True) if given.reasoning is not None else {}
    return replace(given, reasoning=Reasoning.model_validate({**own, "effort": effort}))


def reasoning_ids(output: Iterable[Item]) -> list[str]:
    """Return the ids of reasoning items whose author only we know."""
    found = (item for item in output if kind(item) == "reasoning" and not get(item, "provider_data"))
    return [str(id) for item in found if (id := get(item, "id"))]


def _without_id(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"provider_data": NO_MODEL, **item, "id": FAKE_RESPONSES_ID}


def user_message(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}
