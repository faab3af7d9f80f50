"""One run of a task by an agent of a framework: makes its calls, and keeps what the row holds of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypedDict

from reasonblocks.adapters import RunView
from reasonblocks.exceptions import ConfigError
from reasonblocks.types import StepLogEntry
from reasonblocks.util.secret import KEY_RULE, describe_key, is_key

from ..environment import Environment, ToolError, names, unknown
from ..rows import Made, Told

RETRIES = 4
"""Retries of the client for an answer that is late, refused for its rate, or a server's error."""
TIMEOUT_SECONDS = 120.0
"""The longest wait for one answer. A slow local model reads a long prompt for a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An OpenAI-compatible endpoint and the model that it serves.

    `temperature`, and `max_tokens` of one answer, are the endpoint's own if None; a small model may then write on until
    its context is full. With the `tool_choice` "required", for models that seldom call a tool, a run cannot end with an
    answer. `key` is empty for an endpoint that needs none. Raises `ConfigError` for a key that no header can carry.
    """

    base_url: str
    model: str
    key: str = field(default="", repr=False)
    temperature: float | None = None
    max_tokens: int | None = None
    tool_choice: Literal["auto", "required"] = "auto"
    retries: int = RETRIES
    timeout: float = TIMEOUT_SECONDS

    def __post_init__(self) -> None:
        if self.key and not is_key(self.key):
            raise ConfigError("key", describe_key(self.key), KEY_RULE)

    @property
    def sent_key(self) -> str:
        """The key that a client sends: the clients refuse an empty one."""
        return self.key or "none"


class Result(NamedTuple):
    """The result of a tool call, as the agent reads it."""

    text: str
    is_error: bool


class Tokens(TypedDict):
    """Token counts of a row."""

    prompt: int
    evaluated: int | None
    completion: int


class Task:
    """A run from its reset on. `told` are the texts of steering, `calls` what the agent did.

    A turn with several calls has an entry for each; its thought belongs to the first. They are made one after another,
    but frameworks may call from other threads than the one that reset the environment.
    """

    def __init__(self, environment: Environment, seed: int, *, family: str, run_id: str) -> None:
        self.environment = environment
        self.family = family
        self.run_id = run_id
        self.message = environment.reset(seed)
        self.steps = 0
        self.stopped = False
        """True once the agent answered without a call."""
        self.calls: list[Made] = []
        self.told: list[Told] = []
        self._thought = ""
        self._prompt = self._completion = 0
        self._cached: int | None = None

    @property
    def over(self) -> bool:
        """True once the task is done, or the model was called `max_steps` times."""
        return self.environment.done or self.steps >= self.environment.max_steps

    def answered(self, text: str, *, calls: bool, prompt: int, completion: int, cached: int | None) -> None:
        """Note an answer of the model, before its calls are made. `cached` is None if the endpoint does not say."""
        self.steps += 1
        self._prompt += prompt
        self._completion += completion
        if cached is not None:
            self._cached = (self._cached or 0) + cached
        self._thought = text
        self.stopped = not calls
        if self.stopped:
            self.calls.append(Made(name="", arguments={}, output="", thought=text))

    def make(self, name: str, arguments: object) -> Result:
        """Make a call, and return its result or the environment's refusal. `arguments` are as the model wrote them."""
        given = arguments if isinstance(arguments, Mapping) else {}
        try:
            result = Result(self._call(name, arguments), False)
        except ToolError as error:
            result = Result(f"Error: {error}", True)
        thought, self._thought = self._thought, ""
        made = Made(name=name, arguments=dict(given), output=result.text, is_error=result.is_error, thought=thought)
        self.calls.append(made)
        return result

    def steered(self, run: RunView) -> None:
        """Keep the texts that this run was told."""
        monitors = {injected.step: injected.monitor for injected in run.trace.state.injected}
        self.told = [
            Told(
                step=entry.step,
                text="\n\n".join(entry.intervention_texts),
                monitor=monitors.get(entry.step),
                kind=entry.finding_kind if entry.step in monitors else None,
                sources=entry.injection_sources,
            )
            for entry in _with_texts(run.step_log)
        ]

    def tokens(self) -> Tokens:
        """Return the sums over the run; `evaluated` is None if the endpoint never said what it had in its cache."""
        evaluated = None if self._cached is None else self._prompt - self._cached
        return {"prompt": self._prompt, "evaluated": evaluated, "completion": self._completion}

    def _call(self, name: str, arguments: object) -> str:
        if name not in names(self.environment.tools):
            raise unknown(name, self.environment.tools)
        if not isinstance(arguments, Mapping):
            raise ToolError(f"the arguments have to be a JSON object, not {str(arguments)[:80]!r}")
        if self.environment.done:
            raise ToolError("the task has ended")
        return self.environment.call(name, arguments)


def parsed(arguments: str) -> object:
    """Return the arguments that a model wrote as JSON; the text itself if they are none, and {} for an empty one."""
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except ValueError:
        return arguments


def _with_texts(step_log: Sequence[StepLogEntry]) -> list[StepLogEntry]:
    return [entry for entry in step_log if entry.intervention_texts]
