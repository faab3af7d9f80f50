"""Stands between the SDK and a model: sends each call where its decision says, and records what comes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

from agents import Model, ModelProvider
from agents.items import ModelResponse
from agents.models import get_default_model_settings
from openai.types.responses import ResponseCompletedEvent, ResponseOutputItemDoneEvent

from reasonblocks._formats.openai import Items
from reasonblocks._routing import model_name

from ._calls import CALL, Call, waiting_call
from ._request import settings_for
from ._routes import Routes

ARGUMENTS = ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing")
"""Of `Model.get_response` and `stream_response`, those that the SDK gives by position."""
Asked = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one attempt at a call asks of whom. `call` is None where steering has nothing to do with it."""

    model: Model
    asked: Asked
    call: Call | None


def attempt(call: Call, model: Model, own: Model, asked: Asked) -> Attempt:
    """An attempt at a steered call, at the agent's `own` model or at the one that it is routed to."""
    call.asks(model, model_name(model), model_name(own))
    return Attempt(model, {**asked, "input": call.run.fit(asked["input"], call.model, call.own_model)}, call)


class CallingModel(Model):
    """A model for others to ask: whom an attempt asks, and for what, its heirs say."""

    async def _attempt(self, asked: Asked) -> Attempt:
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
        heard = _Heard(trial.call)
        try:
            async for event in events:
                heard.event(event)
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
        """A call has its answer."""

    def get_retry_advice(self, request: Any) -> Any:
        """That of the model that was asked: the agent's own, where steering had nothing to do with the call."""
        call = CALL.get()
        asked = None if call is None or call.answered else call.target
        model = asked or next(iter(self._behind()), None)
        return None if model is None else model.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        """The SDK calls it on every model that a run has looked up."""
        for model in self._behind():
            await model._cleanup_on_run_end(owner)

    def _behind(self) -> Iterable[Model]:
        """The models that it may ask."""
        raise NotImplementedError


class _Heard:
    """What one stream has told so far. Some providers leave the final event's output empty."""

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

    def __init__(self, own: ModelProvider, routes: Routes, *, owned: bool = False) -> None:
        self.own = own
        self.owned = owned
        self._routes = routes
        self._models: dict[str | None, RunModel] = {}

    def get_model(self, model_name: str | None) -> Model:
        """The same facade for the same model: a run cleans up each one that it was given, at its end."""
        own = self.own.get_model(model_name)
        known = self._models.get(model_name)
        if known is None or known.own is not own:
            known = self._models[model_name] = RunModel(own, model_name, self._routes, self)
        return known

    async def aclose(self) -> None:
        await self.own.aclose()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


class RunModel(CallingModel):
    """A facade: the model that an agent names, or the one that its call is routed to."""

    def __init__(self, own: Model, name: str | None, routes: Routes, provider: SteeredProvider) -> None:
        self.own = own
        self._name = name
        self._routes = routes
        self._provider = provider

    @property  # type: ignore[misc]  # so that the SDK, which asks which API a model speaks, sees the one behind it
    def __class__(self) -> type:
        return type(self.own)

    async def _attempt(self, asked: Asked) -> Attempt:
        call = waiting_call()
        if call is None:
            return Attempt(self.own, asked, None)
        routed = await self._routes.model(call, self._provider.own.get_model)
        if routed is None:
            return attempt(call, self.own, self.own, asked)
        implied, instead = get_default_model_settings(self._name), self._routes.settings(call)
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
        return (self.own, *self._routes.built())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


def _named(args: tuple[Any, ...], kwargs: Asked) -> Asked:
    return {**dict(zip(ARGUMENTS, args)), **kwargs}


def _as_given(asked: Asked, by_position: int) -> tuple[tuple[Any, ...], Asked]:
    """The way back: a model of the caller's may call its arguments as it likes where the SDK gives them by position."""
    first = ARGUMENTS[:by_position]
    return tuple(asked[name] for name in first), {name: value for name, value in asked.items() if name not in first}
