"""A completed step and what belongs to it: calls, results, the input and the outcome of a call."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._json import JSON, MAX_INT, canonical
from .._text import clip, words


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call that a model asked for. `arguments` is JSON, usually an object."""

    id: str
    name: str
    arguments: JSON = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What one tool call gave back. `is_error` is None where the framework does not say."""

    call_id: str
    output: str
    name: str = ""
    is_error: bool | None = None
    duration_ms: float | None = None


class _Cut:
    """Where a step keeps its scored text as words: cut once, for scorer, monitors and embedder."""

    __slots__ = ("_cut",)

    _cut: tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(_Cut):
    """One completed step: what a model call thought and did, and what came back. Parallel calls are all here."""

    thought: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()

    @property
    def action(self) -> str:
        """The flat form: tool names joined by " + "."""
        return " + ".join(call.name for call in self.tool_calls)

    @property
    def action_input(self) -> str:
        """The flat form: canonical JSON of the arguments, a list of them when there are several calls."""
        if not self.tool_calls:
            return ""
        arguments = [call.arguments for call in self.tool_calls]
        return canonical(arguments[0] if len(arguments) == 1 else arguments)

    @property
    def observation(self) -> str:
        """The flat form: outputs joined by a blank line."""
        return "\n\n".join(result.output for result in self.tool_results)

    @property
    def is_error(self) -> bool | None:
        """True if any result is an error, None if none says."""
        flags = [result.is_error for result in self.tool_results if result.is_error is not None]
        return any(flags) if flags else None

    @property
    def scored_text(self) -> str:
        """What difficulty is judged on: visible text, else reasoning, else the calls and what came back."""
        if self.thought.strip():
            return self.thought
        if self.reasoning.strip():
            return self.reasoning
        parts = (self.action, self.action_input, self.observation)
        return "\n".join(part for part in parts if part)

    @property
    def scored_words(self) -> tuple[str, ...]:
        """Lower-cased words of `scored_text`, of its first and last 8,000 characters."""
        text = self.scored_text
        cut: tuple[str, tuple[str, ...]] | None = getattr(self, "_cut", None)
        if cut is None or cut[0] != text:
            cut = (text, words(clip(text)))
            object.__setattr__(self, "_cut", cut)  # the same whoever asks first
        return cut[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInput:
    """The input of an adapter before a model call.

    `key` names the call (the same key again gives the same decision; None: always a new step). `default_model` is the
    name of the model that the agent would call by itself.

    `completed` is the previous step. With a thought or a reasoning it is complete and used as it is. Otherwise both are
    those that `end_step` stored, and so are the calls if it has none. So calls that are known only after the answer was
    executed can be passed here; the log entry of the call that led to them is amended.

    `auxiliary` marks a call that is not a step: planning, summarising, making a title. It gets no guidance, and is
    logged with its tokens as `skipped_reason="auxiliary"`; every rule ignores it. Its `completed` is not read: pass it
    with the next step.
    """

    key: str | None = None
    completed: Step | None = None
    default_model: str = ""
    agent_name: str | None = None
    auxiliary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call as the framework reports them; None where it does not. `reasoning` is part of output."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    def __post_init__(self) -> None:
        """What is no count of tokens is not known."""
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
    """What a model call did. `latency_ms`, `ttft_ms` in milliseconds; `error` is the exception's type and text."""

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
    """Add counts, at most up to the largest integer that a store holds."""
    return other if one is None else one if other is None else min(one + other, MAX_INT)
