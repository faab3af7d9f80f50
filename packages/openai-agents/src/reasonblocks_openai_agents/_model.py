"""Wraps models of the SDK: sends each call to the model that its decision names, and records the outcome."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from agents import Model, ModelProvider, ModelSettings
from agents.items import ModelResponse
from agents.models import get_default_model_settings
from openai.types.responses import ResponseCompletedEvent, ResponseOutputItemDoneEvent

from reasonblocks.adapters import RoutedModels, adrive, is_identifier, model_name
from reasonblocks.messages.openai import Items

from ._request import settings_for, with_effort
from ._steered import CALL, Call, CallArguments, waiting_call

ARGUMENTS = ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing")
"""The arguments of `Model.get_response` and `stream_response` that the SDK passes by position."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a call: a model and its arguments. `call` is None if it is not steered."""

    model: Model
    asked: CallArguments
    call: Call | None


def attempt(call: Call, model: Model, own: Model, asked: CallArguments) -> Attempt:
    """Return an attempt at a steered call, at the agent's `own` model or at the one that it is routed to."""
    call.asks(model, model_name(model), model_name(own))
    if call.withdrawn:
        instructions, last = call.unsteered
        asked = {**asked, "system_instructions": instructions, "input": [*asked["input"][:-1], *last]}
    elif (effort := call.decision.effort) is not None:
        with call.session.asking_effort():
            asked = {**asked, "model_settings": with_effort(asked["model_settings"], effort)}
    return Attempt(model, {**asked, "input": call.run.fit(asked["input"], call.model, call.own_model)}, call)


def as_model(given: object) -> Model:
    """Return a model of the SDK. Raises `TypeError` for anything else."""
    if not isinstance(given, Model):
        raise TypeError(f"{given!r} is no model: map a state to an identifier or to an instance of agents.Model")
    return given


async def routed_model(models: RoutedModels[Model], call: Call, build: Callable[[str], Model]) -> Model | None:
    """Return the model that the call's run maps to its route; None keeps the agent's."""
    return await adrive(models.model(call.session, call.decision.route, call.run.model_routing, build))


def routed_settings(call: Call) -> ModelSettings:
    """Return the settings that the SDK fills in for a routed model: only for an identifier."""
    wanted = call.run.model_routing.get(call.decision.route or "")
    return get_default_model_settings(wanted) if is_identifier(wanted) else ModelSettings()


class CallingModel(Model):
    """Base of our model wrappers; subclasses implement `_attempt`."""

    async def _attempt(self, asked: CallArguments) -> Attempt:
        raise NotImplementedError

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        trial = await self._attempt(_named(args, kwargs))
        args, kwargs = _as_given(trial.asked, len(args))
        if trial.call is None:
            return await trial.model.get_response(*args, **kwargs)
        try:
            response = await trial.model.get_response(*args, **kwargs)
        except BaseException as exc:
            trial.call.failed(exc)
            raise
        trial.call.answer(response.output, response.usage)
        await self._answered(trial.call)
        return response

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        trial = await self._attempt(_named(args, kwargs))
        args, kwargs = _as_given(trial.asked, len(args))
        events = trial.model.stream_response(*args, **kwargs)
        reader = _StreamReader(trial.call)
        try:
            async for event in events:
                reader.event(event)
                yield event
        except BaseException as exc:
            if trial.call is not None:
                trial.call.failed(exc)
            raise
        finally:
            if (close := getattr(events, "aclose", None)) is not None:
                await close()
        if trial.call is not None and trial.call.answered:
            await self._answered(trial.call)

    async def _answered(self, call: Call) -> None:
        """Do what follows an answered call."""

    def get_retry_advice(self, request: Any) -> Any:
        """Ask the model that was called: the agent's own, if the call was not steered."""
        call = CALL.get()
        called = None if call is None or call.answered else call.target
        model = called or next(iter(self._behind()), None)
        return None if model is None else model.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        """Clean up the models behind. The SDK calls it on every model that a run has looked up."""
        for model in self._behind():
            await model._cleanup_on_run_end(owner)

    def _behind(self) -> Iterable[Model]:
        """Return the models that it may ask."""
        raise NotImplementedError


class _StreamReader:
    """Collects the answer of one stream. Some providers leave the final event's output empty."""

    def __init__(self, call: Call | None) -> None:
        self._call = call
        self._items: Items = []

    def event(self, event: Any) -> None:
        if self._call is None:
            return
        self._call.saw_event()
        if isinstance(event, ResponseOutputItemDoneEvent):
            self._items.append(event.item)
        elif isinstance(event, ResponseCompletedEvent):
            self._call.answer(event.response.output or self._items, event.response.usage)


class SteeredProvider(ModelProvider):
    """The run's own provider, whose models are steered. One that is `owned` is closed when the run ends."""

    def __init__(self, own: ModelProvider, routed: RoutedModels[Model], *, owned: bool = False) -> None:
        self.own = own
        self.owned = owned
        self._routed = routed
        self._models: dict[str | None, RunModel] = {}

    def get_model(self, model_name: str | None) -> Model:
        """Return the same wrapper for the same model: a run cleans up each model that it has looked up, at its end."""
        own = self.own.get_model(model_name)
        known = self._models.get(model_name)
        if known is None or known.own is not own:
            known = self._models[model_name] = RunModel(own, model_name, self._routed, self)
        return known

    async def aclose(self) -> None:
        await self.own.aclose()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


class RunModel(CallingModel):
    """A wrapper for the model that an agent names; calls it, or the one that the call is routed to."""

    def __init__(self, own: Model, name: str | None, routed: RoutedModels[Model], provider: SteeredProvider) -> None:
        self.own = own
        self._name = name
        self._routed = routed
        self._provider = provider

    @property  # type: ignore[misc]  # so that the SDK, which asks which API a model speaks, sees the one behind it
    def __class__(self) -> type:
        return type(self.own)

    async def _attempt(self, asked: CallArguments) -> Attempt:
        call = waiting_call()
        if call is None:
            return Attempt(self.own, asked, None)
        routed = await routed_model(self._routed, call, self._provider.own.get_model)
        if routed is None:
            return attempt(call, self.own, self.own, asked)
        implied, instead = get_default_model_settings(self._name), routed_settings(call)
        settings = settings_for(asked["model_settings"], implied, instead)
        return attempt(call, routed, self.own, {**asked, "model_settings": settings})

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await super()._cleanup_on_run_end(owner)
        if self._provider.owned:
            await self._provider.aclose()

    async def close(self) -> None:
        for model in self._behind():
            await model.close()

    def _behind(self) -> Iterable[Model]:
        return (self.own, *self._routed.built())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


def _named(args: tuple[Any, ...], kwargs: CallArguments) -> CallArguments:
    return {**dict(zip(ARGUMENTS, args)), **kwargs}


def _as_given(asked: CallArguments, by_position: int) -> tuple[tuple[Any, ...], CallArguments]:
    """Return the arguments as the SDK passed them: a model of the caller's may name its parameters otherwise."""
    first = ARGUMENTS[:by_position]
    return tuple(asked[name] for name in first), {name: value for name, value in asked.items() if name not in first}
