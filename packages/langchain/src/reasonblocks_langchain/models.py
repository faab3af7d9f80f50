"""Reads the name and the provider of LangChain's chat models, and makes routed ones."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from reasonblocks.adapters import attribute, is_identifier

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_NO_CACHE_CONTROL = ("openai", "azure", "amazon", "aws", "bedrock", "google", "vertex")
"""Parts of the names of providers that refuse `cache_control`, or forward it verbatim, whatever their model's name."""


def model_name(model: object) -> str:
    """Return the provider's name for a model, or the name of its class."""
    named = _ls_params(model).get("ls_model_name")
    found = (named, *(attribute(model, name) for name in ("model_name", "model", "model_id")))
    return next((name for name in found if is_identifier(name) and name), type(model).__name__)


def takes_cache_control(model: object) -> bool:
    """Return True if content blocks may carry Anthropic's `cache_control`, which only Anthropic itself reads."""
    provider = str(_ls_params(model).get("ls_provider") or "").lower()
    if provider == "anthropic":
        return True
    return not any(name in provider for name in _NO_CACHE_CONTROL) and "claude" in model_name(model).lower()


def effort_settings(model: object, effort: str) -> dict[str, Any]:
    """Return the settings of a call with this effort. Raises `TypeError` for a chat model that takes none."""
    if isinstance(reasoning := attribute(model, "reasoning"), dict):
        return {"reasoning": {**reasoning, "effort": effort}}
    if "reasoning_effort" in getattr(type(model), "model_fields", {}):
        return {"reasoning_effort": effort}
    raise TypeError(f"{type(model).__name__} has no reasoning_effort")


def route_names(models: Mapping[str, object]) -> dict[str, str]:
    """Return the model's name for each mapped state."""
    return {state: model if is_identifier(model) else model_name(model) for state, model in models.items()}


def chat_model(given: Any) -> BaseChatModel:
    """Return a model that can take part in an agent, because it binds tools. Raises `TypeError` for anything else."""
    if not hasattr(given, "bind_tools"):
        raise TypeError(f"{given!r} is no chat model: map a state to an identifier or to a LangChain chat model")
    model: BaseChatModel = given
    return model


def build(name: str) -> BaseChatModel:
    """Make the model of an identifier. Raises what LangChain raises if it cannot be made."""
    from langchain.chat_models import init_chat_model

    return init_chat_model(name)


def _ls_params(model: object) -> Mapping[str, Any]:
    """Return LangChain's tracing parameters: the only place where every integration names its provider."""
    ask = attribute(model, "_get_ls_params")
    with suppress(Exception):  # foreign code may raise; the model's own names remain
        params = ask() if callable(ask) else None
        return params if isinstance(params, dict) else {}
    return {}
