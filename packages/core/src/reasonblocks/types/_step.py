"""The values of a step: its tool calls and results, and the input and outcome of a model call."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..util.json import JSON, MAX_INT, canonical
from ..util.text import clip, words


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call requested by a model. `arguments` is JSON, usually an object."""

    id: str
    name: str
    arguments: JSON = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of one tool call. `is_error` is None if the framework does not report it."""

    call_id: str
    output: str
    name: str = ""
    is_error: bool | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A completed step: the text and tool calls of a model call, parallel calls included, and their results.

    `user_text` is a message that the user added to the conversation before that call, other than the task.
    """

    thought: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    user_text: str = ""

    @property
    def action(self) -> str:
        """The tool names, joined by " + "."""
        return " + ".join(call.name for call in self.tool_calls)

    @property
    def action_input(self) -> str:
        """The arguments as canonical JSON; a list for several calls."""
        if not self.tool_calls:
            return ""
        arguments = [call.arguments for call in self.tool_calls]
        return canonical(arguments[0] if len(arguments) == 1 else arguments)

    @property
    def observation(self) -> str:
        """The outputs, joined by a blank line."""
        return "\n\n".join(result.output for result in self.tool_results)

    @property
    def is_error(self) -> bool | None:
        """True if any result is an error, None if no result reports it."""
        flags = [result.is_error for result in self.tool_results if result.is_error is not None]
        return any(flags) if flags else None

    @property
    def scored_text(self) -> str:
        """The text that difficulty is scored on: the visible text, else the reasoning, else the calls and results."""
        if self.thought.strip():
            return self.thought
        if self.reasoning.strip():
            return self.reasoning
        parts = (self.action, self.action_input, self.observation)
        return "\n".join(part for part in parts if part)

    @property
    def scored_words(self) -> tuple[str, ...]:
        """The lower-cased words of the first and last 8,000 characters of `scored_text`."""
        return words(clip(self.scored_text))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInput:
    """The input of an adapter before a model call.

    `key` names the call: the same key again returns the same decision, and None always begins a new step.
    `default_model` is the name of the model that the agent would call without routing.

    `completed` is the previous step. If it has a thought or a reasoning, it is complete and used unchanged. Otherwise
    `end_step` has stored both, and also the calls if it has none. So you can pass calls here that are known only after
    the answer was executed; the log entry of the call that led to them is amended.

    `auxiliary` marks a call that is not a step, such as planning, summarising or making a title. It gets no guidance,
    is logged with its tokens as `skipped_reason="auxiliary"`, and is ignored by every rule. Its `completed` is not
    read: pass it with the next step.

    `calls_left` is the most calls that the framework's own limits leave, this one included; None if that is unknown. A
    run with `budget="auto"` is told of it. `seconds` is the time since the run began, for `Budget(seconds=...)`; with
    None the session counts it.
    """

    key: str | None = None
    completed: Step | None = None
    default_model: str = ""
    agent_name: str | None = None
    auxiliary: bool = False
    calls_left: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call as the framework reports them, else None. `reasoning` is part of `output`."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    def __post_init__(self) -> None:
        """Replace every value that is not a token count by None."""
        for name in ("input", "output", "cache_read", "cache_write", "reasoning"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 0 <= value <= MAX_INT):
                object.__setattr__(self, name, None)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=_sum(self.input, other.input),
            output=_sum(self.output, other.output),
            cache_read=_sum(self.cache_read, other.cache_read),
            cache_write=_sum(self.cache_write, other.cache_write),
            reasoning=_sum(self.reasoning, other.reasoning),
        )

    @property
    def total(self) -> int | None:
        return _sum(self.input, self.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """The outcome of a model call. Times are milliseconds; `error` is the exception's type and text."""

    model: str = ""
    usage: Usage = field(default_factory=Usage)
    latency_ms: float | None = None
    ttft_ms: float | None = None
    attempts: int = 1
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: str | None = None
    error: str | None = None


def _sum(one: int | None, other: int | None) -> int | None:
    """Add two counts, up to the largest integer that a store holds."""
    return other if one is None else one if other is None else min(one + other, MAX_INT)
