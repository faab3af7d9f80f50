"""A steered model for an agent. Uses the run that it is called in, or recognises runs by their requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import NoneType
from typing import TYPE_CHECKING

from agents import Model, MultiProvider
from agents.models import get_default_model

from reasonblocks.adapters import CLOSE_SECONDS, Newest, RoutedModels, RunOptions, Runs, SteeringHandle, model_name
from reasonblocks.exceptions import ConfigError
from reasonblocks.messages.openai import Items

from ._config import ONLY_REQUESTS, SERVER_MANAGED, new_run
from ._convert import newest_call_id, task_of
from ._model import Attempt, CallingModel, as_model, attempt, routed_model
from ._request import user_message
from ._steered import CALL, Call, CallArguments, SteeredRun, next_of, waiting_call, with_waiting

if TYPE_CHECKING:
    from reasonblocks import ReasonBlocks

MAX_WAITING = 4_096
"""Tool calls whose results are awaited; with more, the oldest run cannot be distinguished from a new one."""
MAX_TRIED = 256
"""Requests that are under way, or raised and may be sent again; beyond, a second try of the oldest is a new run."""


class SteeredModel(SteeringHandle[SteeredRun], CallingModel):
    """A steered model for `Agent(model=...)`, made by `rb.openai_model(...)`.

    In a run of `rb.openai_run` it belongs to that run. In any other it sees only requests: it recognises a run by the
    tool calls that its request answers, finishes it with an answer that calls no tool, and leaves one that raises open
    for `close()`. A context manager.
    """

    def __init__(
        self,
        rb: ReasonBlocks,
        options: RunOptions,
        default_model: str | Model | None,
        model_factory: Callable[[str], Model] | None,
    ) -> None:
        _check(default_model, model_factory, options.model)
        self._rb = rb
        self._options = options
        self._default = default_model
        self._factory = model_factory or MultiProvider().get_model
        self._own: Model | None = default_model if isinstance(default_model, Model) else None
        self._routed = RoutedModels(as_model)
        self._runs = Runs(options.run_id)
        self._waiting: Newest[str, tuple[SteeredRun, ...]] = Newest(MAX_WAITING)
        self._tried: Newest[str, tuple[Items, SteeredRun]] = Newest(MAX_TRIED)

    @property
    def model(self) -> str:
        """The name of the model that it calls when nothing else is decided."""
        return model_name(self._own or self._default or get_default_model())

    async def _attempt(self, asked: CallArguments) -> Attempt:
        own = await self._own_model()
        if self._rb.disabled:
            return Attempt(own, asked, None)
        call = waiting_call()
        if call is None:
            call, asked = await self._decided(asked, own)
        if call is None:
            return Attempt(own, asked, None)
        model = await routed_model(self._routed, call, self._factory) or own
        return attempt(call, model, own, asked)

    async def _own_model(self) -> Model:
        return await asyncio.to_thread(self._built) if self._own is None else self._own

    def _built(self) -> Model:
        if self._own is None:
            make: Callable[..., Model] = self._factory
            self._own = make(self._default)
        return self._own

    def _supports_default_prompt_cache_key(self) -> bool:
        """Answer for its own model: the SDK adds a cache key to the requests of some models."""
        supports = getattr(self._built(), "_supports_default_prompt_cache_key", None)
        return supports is not None and bool(supports())

    # ------------------------------------------------------------ runs that are known by their requests

    async def _decided(self, asked: CallArguments, own: Model) -> tuple[Call | None, CallArguments]:
        """Return the call that this request makes, and the request with its guidance."""
        with self._rb.guard("steering a call"):
            items: Items = asked["input"] if isinstance(asked["input"], list) else [user_message(asked["input"])]
            kept = bool(asked.get("conversation_id") or asked.get("previous_response_id"))
            run = self._run_of(items) or self._begun(items, model_name(own), server_managed=kept)
            self._tried.keep(_which(items), (items, run))
            call = await run.decide(items, agent_name=None, own_model=model_name(own), server_managed=kept)
            if call is None:
                return None, asked
            call.filtered = False
            CALL.set(call)
            call.request = _which(items)
            if run.session.observes:
                return call, asked
            steered_request = run.say(asked["system_instructions"], items, call.decision)
            return call, {**asked, "system_instructions": steered_request[0], "input": steered_request[1]}
        return None, asked

    def _run_of(self, items: Items) -> SteeredRun | None:
        _, tried = self._tried.get(_which(items), (items, None))
        waiting = self._waiting.get(newest_call_id(items) or "", ())
        return tried or next_of((run for run in waiting if not run.stopped), items)

    def _begun(self, items: Items, model: str, *, server_managed: bool) -> SteeredRun:
        run = new_run(
            self._rb,
            self._options,
            run_id=self._runs.new_id(),
            agent_name="",
            task=task_of(items),
            model=model,
            caps=SERVER_MANAGED if server_managed else ONLY_REQUESTS,
        )
        return self._runs.add(run)

    async def _answered(self, call: Call) -> None:
        if call.filtered:
            return
        run = call.run
        self._tried.pop(call.request, None)
        for call_id in call.waits_for:
            self._waiting.keep(call_id, with_waiting(self._waiting.get(call_id, ()), call_id, run))
        if not call.waits_for:
            with run.session.guard("finishing a run"):
                await run.session.afinish()

    # ------------------------------------------------------------ the rest of the SDK's protocol

    async def close(self, timeout: float = CLOSE_SECONDS) -> None:  # type: ignore[override]  # the SDK awaits it
        """Finish open runs as abandoned, wait at most `timeout` seconds for sinks, and close the underlying models."""
        await asyncio.to_thread(super().close, timeout)
        for model in self._behind():
            await model.close()

    def _behind(self) -> list[Model]:
        return [*([self._own] if self._own else []), *self._routed.built()]


def _which(items: Items) -> str:
    """Return the identity of a request: the SDK retries with the very same list, which must be kept alive."""
    return str(id(items))


def _check(default_model: object, model_factory: object, named: str | None) -> None:
    """Raise `ConfigError` for a value that cannot be a model, and for a name where no model is chosen."""
    if not isinstance(default_model, (str, Model, NoneType)) or default_model == "":
        rule = "must be a model's identifier, an instance of agents.Model, or None for the SDK's default"
        raise ConfigError("default_model", default_model, rule)
    if model_factory is not None and not callable(model_factory):
        raise ConfigError("model_factory", model_factory, "must be callable: it makes a Model of an identifier")
    if named and default_model is None and model_factory is None:
        rule = f"a name for the record, which chooses no model: rb.openai_model({named!r}) calls it"
        raise ConfigError("model", named, rule)
