"""Knows LangChain's chat models: what they are called, who serves them, and how a routed one is made."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from reasonblocks._routing import attribute, is_identifier

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_NO_CACHE_CONTROL = ("openai", "azure", "amazon", "aws", "bedrock", "google", "vertex")
"""In the names of providers that refuse `cache_control` or send it on verbatim, whatever the model is called."""


def model_name(model: object) -> str:
    """The name that the provider knows it by, or that of its class."""
    named = _ls_params(model).get("ls_model_name")
    found = (named, *(attribute(model, name) for name in ("model_name", "model", "model_id")))
    return next((name for name in found if is_identifier(name) and name), type(model).__name__)


def takes_cache_control(model: object) -> bool:
    """Whether content blocks may carry Anthropic's `cache_control`: only where Anthropic itself reads them."""
    provider = str(_ls_params(model).get("ls_provider") or "").lower()
    if provider == "anthropic":
        return True
    return not any(name in provider for name in _NO_CACHE_CONTROL) and "claude" in model_name(model).lower()


def route_names(models: Mapping[str, object]) -> dict[str, str]:
    """State to model name, as the engine knows them."""
    return {state: model if is_identifier(model) else model_name(model) for state, model in models.items()}


class Routes:
    """The routed models: objects as they are, identifiers built once each. Safe to share between threads."""

    def __init__(self, models: Mapping[str, object]) -> None:
        self._models = models
        self._built: dict[str, BaseChatModel] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._models)

    def ready(self, state: str) -> bool:
        """Whether `model` answers without building anything."""
        wanted = self._models[state]
        return not is_identifier(wanted) or wanted in self._built

    def model(self, state: str) -> BaseChatModel:
        """The model of a state. Raises what LangChain raises when it cannot be built."""
        wanted: Any = self._models[state]
        if not is_identifier(wanted):
            return _chat_model(wanted)
        with self._lock:
            if wanted not in self._built:
                self._built[wanted] = _build(wanted)
            return self._built[wanted]


def _chat_model(given: Any) -> BaseChatModel:
    """What can take part in an agent: it binds tools."""
    if not hasattr(given, "bind_tools"):
        raise TypeError(f"{given!r} is no chat model: map a state to an identifier or to a LangChain chat model")
    model: BaseChatModel = given
    return model


def _build(name: str) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    return init_chat_model(name)


def _ls_params(model: object) -> Mapping[str, Any]:
    """What LangChain tells its tracing about a model; the only place where every integration names its provider."""
    ask = attribute(model, "_get_ls_params")
    with suppress(Exception):  # foreign code may raise; the model's own names remain
        params = ask() if callable(ask) else None
        return params if isinstance(params, dict) else {}
    return {}
