"""Policies that need no model: random calls, for tests of the harness, and the reference policies of environments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from .backend import Message, Query, Reply
from .environment import Call, Closing, Environment, Limited, Solvable, ToolError

_WORD = re.compile(r"[\w./-]+")
_EDGES = "./-"
NEWEST = 2
"""Messages at the end from whose words a random policy takes the values of free arguments."""


class RandomBackend:
    """A policy that calls any tool with any of the valid values, or with a word of the newest messages.

    With the probability `repeats` it makes the call before the last one again: going back and forth, as stuck agents
    do. The same queries get the same replies.
    """

    model = "random"
    in_rounds = True

    def __init__(self, seed: int = 0, *, repeats: float = 0.0, lanes: int = 8) -> None:
        self._seed, self._repeats, self.lanes = seed, repeats, lanes

    def complete(self, queries: Sequence[Query]) -> list[Reply]:
        """Answer each query with a call."""
        return [Reply(call=self.next_call(query)) for query in queries]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def next_call(self, query: Query) -> Call:
        """Return the call that answers this query."""
        rng = Random(f"{self._seed} {query.seed} {len(query.messages)}")
        before = calls_in(query.messages)
        if len(before) > 1 and rng.random() < self._repeats:
            return before[-2]
        chosen = rng.choice(query.tools)["function"]
        words = _words(query.messages[-NEWEST:]) or ["."]
        values = {
            key: rng.choice(query.choices.get(f"{chosen['name']}.{key}") or words)
            for key in chosen["parameters"]["required"]
        }
        return Call(chosen["name"], values)


class ReferenceBackend:
    """The reference policies of environments that `make` returns, for the tasks of these seeds.

    A query belongs to the first of these tasks that has its user's message and, when its calls are made again, its
    results.
    """

    model = "reference"
    in_rounds = True

    def __init__(self, make: Callable[[], Environment], seeds: Iterable[int], *, lanes: int = 8) -> None:
        self._make, self.lanes = make, lanes
        environment = make()
        self._tasks = [(environment.reset(seed), seed) for seed in seeds]
        close(environment)

    def complete(self, queries: Sequence[Query]) -> list[Reply]:
        """Answer each query with the next call of the policy, or with text where it knows none."""
        return [Reply(call=self._call(query.messages)) for query in queries]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _call(self, messages: Sequence[Message]) -> Call | None:
        said = next(message["content"] for message in messages if message["role"] == "user")
        environment = self._make()
        try:
            for task, seed in self._tasks:
                if said.startswith(task) and _follows(environment, seed, messages):
                    return environment.reference() if isinstance(environment, Solvable) else None
            return None
        finally:
            close(environment)


def _follows(environment: Environment, seed: int, messages: Sequence[Message]) -> bool:
    """Make the calls of the messages in the task of this seed, and return whether they have its results.

    A message may have more after the result.
    """
    environment.reset(seed)
    results = [str(message["content"]) for message in messages if message["role"] == "tool"]
    return all(result.startswith(outcome(environment, call)) for call, result in zip(calls_in(messages), results))


def calls_in(messages: Sequence[Message]) -> list[Call]:
    """Return the calls of all messages, the oldest first."""
    found = [item["function"] for message in messages for item in message.get("tool_calls") or ()]
    return [Call(item["name"], json.loads(item["arguments"])) for item in found]


def outcome(environment: Environment, call: Call) -> str:
    """Make the call and return what the agent reads."""
    try:
        return environment.call(call.name, call.arguments)
    except ToolError as refusal:
        return f"Error: {refusal}"


def reference_wins(environment: Environment, steps_left: int) -> bool:
    """Play the reference policy from here for at most so many steps, and return whether it solves the task.

    An environment without a policy, or one whose policy knows no call, is judged as it is now.
    """
    if isinstance(environment, Solvable):
        for _ in range(steps_left):
            if environment.done or (call := environment.reference()) is None:
                break
            outcome(environment, call)
    return environment.success()


def play(environment: Environment, task: str, policy: RandomBackend, seed: int, steps: int) -> list[tuple[Call, str]]:
    """Make so many calls of the policy, fewer if the task ends, and return them with what the agent reads."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    made: list[tuple[Call, str]] = []
    while len(made) < steps and not environment.done:
        choices = environment.choices() if isinstance(environment, Limited) else {}
        query = Query(messages=messages, tools=environment.tools, lane=0, seed=seed, choices=choices)
        call = policy.next_call(query)
        text = outcome(environment, call)
        made.append((call, text))
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        messages.append({"role": "assistant", "content": "", "tool_calls": [{"id": "call", "function": function}]})
        messages.append({"role": "tool", "tool_call_id": "call", "content": text})
    return made


def close(environment: Environment) -> None:
    """Release what the environment holds open, if it can."""
    if isinstance(environment, Closing):
        environment.close()


def _words(messages: Sequence[Message]) -> list[str]:
    said = " ".join([str(message.get("content") or "") for message in messages])
    return [word for found in _WORD.findall(said) if (word := found.strip(_EDGES))]
