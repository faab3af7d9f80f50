"""Shortens old, long tool outputs in the requests of a `create_agent` agent, never in its state."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.types import Command
from typing_extensions import NotRequired, Unpack

from reasonblocks import Usage
from reasonblocks.exceptions import ConfigError
from reasonblocks.keywords import check_keywords
from reasonblocks.messages import langchain
from reasonblocks.options.values import switch
from reasonblocks.session.guard import Faults

from ..models import model_name
from . import LOST, Book, SavingPlan, TokenSaving, is_longer
from ._request_parts import request_parts, text_of

if TYPE_CHECKING:
    from ..steering_middleware import AsyncHandler, Handler

CHANNEL = "reasonblocks_saving"
Ledger = Mapping[str, Any]
INLINE_CHARS = 100_000
INLINE_MESSAGES = 500
"""The largest request that is planned in the event loop: that takes less than 5 ms."""


def newest(old: Ledger, new: Ledger) -> Ledger:
    """Return the ledger of the last answer, in case one call is answered twice."""
    return new


class SavingState(AgentState[Any]):
    """An agent's state with the ledger, which is part of neither the input nor the output."""

    reasonblocks_saving: NotRequired[Annotated[Ledger, PrivateStateAttr, newest]]


class SavingOptions(TypedDict, total=False):
    """The options of `TokenSaving`."""

    keep: int
    over_chars: int
    head: int
    tail: int
    read_price: float
    write_price: float


class TokenSavingMiddleware(AgentMiddleware[SavingState, Any, Any]):
    """Sends old, long tool outputs shortened, if that makes the run no dearer; monitors still read them whole.

    Takes a `TokenSaving`, or its options as keywords, and raises `ConfigError` for a wrong value or keyword. `saving`
    is the value in use. One object serves any number of agents and runs. List it last, so that it reads what is really
    sent: `middleware=[retry, caching, mw, TokenSavingMiddleware()]`.

    REASONBLOCKS_DISABLED=1 disables it. If shortening fails, the request is sent whole. A ledger that cannot be read is
    replaced by a new one. Either fault is logged once; with `strict` it is raised.
    """

    state_schema = SavingState

    def __init__(
        self, saving: TokenSaving | None = None, *, strict: bool = False, **options: Unpack[SavingOptions]
    ) -> None:
        super().__init__()
        _check(saving, options)
        self.tools = []
        self.saving = TokenSaving(**options) if saving is None else saving
        self._faults = Faults("token saving", strict=strict)
        self._disabled = switch("REASONBLOCKS_DISABLED", os.environ)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Handler
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        plan, sent = self._planned(request)
        return self._answered(plan, handler(sent))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: AsyncHandler
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        if not self._disabled and _is_long(request.messages):
            plan, sent = await asyncio.to_thread(self._planned, request)
        else:
            plan, sent = self._planned(request)
        return self._answered(plan, await handler(sent))

    def _planned(self, request: ModelRequest[Any]) -> tuple[SavingPlan | None, ModelRequest[Any]]:
        """Return the plan and the request to send: as it was, without a plan, after a fault."""
        if self._disabled:
            return None, request
        with self._faults.guard("shortening tool outputs"):
            parts = request_parts(request.messages, request.state.get("messages", ()))
            plan = self.saving.plan(parts, self._ledger(request.state), model=model_name(request.model))
            return plan, request.override(messages=self._shortened(request.messages, plan)) if plan.cut else request
        return None, request

    def _ledger(self, state: Mapping[str, Any]) -> Ledger | None:
        """Return the ledger of the last answer; None before the first, when the channel is missing or empty."""
        ledger = state.get(CHANNEL) or None
        with self._faults.guard("reading the ledger"):
            Book.of(ledger)
            return ledger
        return LOST

    def _shortened(self, messages: Sequence[AnyMessage], plan: SavingPlan) -> list[AnyMessage]:
        sent = [*messages]
        for at in plan.cut:
            sent[at] = sent[at].model_copy(update={"content": _shorter(sent[at].content, self.saving)})
        return sent

    def _answered(
        self, plan: SavingPlan | None, response: ModelResponse[Any]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        with self._faults.guard("keeping what token saving has gained"):
            if plan is not None:
                answer = next((message for message in response.result if isinstance(message, AIMessage)), None)
                usage = Usage() if answer is None else langchain.usage_of(answer)
                return ExtendedModelResponse(response, Command(update={CHANNEL: plan.ledger(usage)}))
        return response


def _check(saving: object, options: Mapping[str, object]) -> None:
    if saving is not None and not isinstance(saving, TokenSaving):
        raise ConfigError("saving", saving, "must be a TokenSaving")
    check_keywords("TokenSavingMiddleware", options, ("saving", "strict", *SavingOptions.__annotations__))
    if saving is not None and options:
        raise TypeError(f"pass a TokenSaving or its options, not both: {', '.join(options)}")


def _is_long(messages: Sequence[AnyMessage]) -> bool:
    return len(messages) > INLINE_MESSAGES or is_longer([*map(_read, messages)], INLINE_CHARS)


def _read(message: AnyMessage) -> list[object]:
    """Return what a plan reads of a message."""
    calls = [message.tool_calls, message.invalid_tool_calls] if isinstance(message, AIMessage) else []
    return [message.content, message.additional_kwargs, calls]


def _shorter(content: str | list[Any], saving: TokenSaving) -> str | list[Any]:
    """Return the content with its texts shortened and everything else as it was."""
    if isinstance(content, str):
        return saving.shortened(content)
    return [*map(partial(_shorter_block, saving), content)]


def _shorter_block(saving: TokenSaving, block: Any) -> Any:
    text = text_of(block)
    if text is None:
        return block
    return saving.shortened(text) if isinstance(block, str) else {**block, "text": saving.shortened(text)}
