"""Shortens old, long tool outputs in the requests of a `create_agent` agent, never in its state."""

from __future__ import annotations

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
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langgraph.types import Command
from typing_extensions import NotRequired, Unpack

from reasonblocks import RequestPart, SavingPlan, TokenSaving, Usage
from reasonblocks._config._options import switch
from reasonblocks._formats import langchain
from reasonblocks._session._guard import Faults

from ._models import model_name

if TYPE_CHECKING:
    from ._middleware import AsyncHandler, Handler

CHANNEL = "reasonblocks_saving"
Ledger = dict[str, Any]


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

    Takes a `TokenSaving`, or its options as keywords, and raises `ConfigError` for a wrong value. `saving` is the value
    in use. One object serves any number of agents and runs. List it last, so that it reads what is really sent:
    `middleware=[retry, caching, mw, TokenSavingMiddleware()]`.

    REASONBLOCKS_DISABLED=1 disables it. If shortening fails, the request is sent whole, and the fault is logged once;
    with `strict` it is raised.
    """

    state_schema = SavingState

    def __init__(
        self, saving: TokenSaving | None = None, *, strict: bool = False, **options: Unpack[SavingOptions]
    ) -> None:
        super().__init__()
        if saving is not None and options:
            raise TypeError(f"pass a TokenSaving or its options, not both: {', '.join(options)}")
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
        plan, sent = self._planned(request)
        return self._answered(plan, await handler(sent))

    def _planned(self, request: ModelRequest[Any]) -> tuple[SavingPlan | None, ModelRequest[Any]]:
        """Return the plan and the request to send: as it was, without a plan, after a fault."""
        if self._disabled:
            return None, request
        with self._faults.guard("shortening tool outputs"):
            parts = request_parts(request.messages, request.state.get("messages", ()))
            plan = self.saving.plan(parts, _ledger(request.state), model=model_name(request.model))
            return plan, request.override(messages=self._shortened(request.messages, plan)) if plan.cut else request
        return None, request

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


def _ledger(state: Mapping[str, Any]) -> Ledger | None:
    """Return the ledger of the last answer; None before the first, when the channel is missing or empty."""
    return state.get(CHANNEL) or None


def request_parts(messages: Sequence[AnyMessage], state: Sequence[AnyMessage]) -> list[RequestPart]:
    """Return a request's messages for a plan. A last message that is not in the state as it is, such as one that
    guidance has joined, has no key, since the next request will have it otherwise."""
    parts = [_part(message) for message in messages]
    if messages and not any(
        message.id == messages[-1].id and message.content == messages[-1].content for message in reversed(state)
    ):
        parts[-1] = _part(messages[-1], named=False)
    return parts


def _part(message: AnyMessage, *, named: bool = True) -> RequestPart:
    texts = tuple(_texts(message.content))
    calls = _calls_beside(message) if isinstance(message, AIMessage) else []
    key = message.id if named else None
    if isinstance(message, ToolMessage):
        return RequestPart(
            kind="result", key=key, texts=texts, other_bytes=_other_bytes(message),
            is_error=message.status == "error",
        )  # fmt: skip
    return RequestPart(
        kind="answer" if isinstance(message, AIMessage) else "other",
        key=key,
        texts=texts,
        other_bytes=_other_bytes(message) + sum(len(str(call["args"])) + len(call["name"]) for call in calls),
        blocks=max(1, len(calls) + (1 if isinstance(message.content, str) else len(message.content))),
    )


def _calls_beside(answer: AIMessage) -> list[ToolCall]:
    """Return the calls of an answer that its content does not have as blocks."""
    kinds = {block.get("type") for block in answer.content if isinstance(block, Mapping)}
    return [] if kinds & {"tool_use", "function_call"} else answer.tool_calls


def _texts(content: str | list[Any]) -> list[str]:
    return [content] if isinstance(content, str) else [text for text in map(_text, content) if text is not None]


def _text(block: object) -> str | None:
    """Return the text of a text block; None for any other."""
    if isinstance(block, str):
        return block
    text = block.get("text") if isinstance(block, Mapping) and block.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _other_bytes(message: AnyMessage) -> int:
    """Return the size of a message's blocks that are not text."""
    if isinstance(message.content, str):
        return 0
    return sum(len(str(block)) for block in message.content if _text(block) is None)


def _shorter(content: str | list[Any], saving: TokenSaving) -> str | list[Any]:
    """Return the content with its texts shortened and everything else as it was."""
    if isinstance(content, str):
        return saving.shortened(content)
    return [*map(partial(_shorter_block, saving), content)]


def _shorter_block(saving: TokenSaving, block: Any) -> Any:
    text = _text(block)
    if text is None:
        return block
    return saving.shortened(text) if isinstance(block, str) else {**block, "text": saving.shortened(text)}
