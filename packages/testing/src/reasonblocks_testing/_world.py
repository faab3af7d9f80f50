"""Scripts, backends and clients of the conformance suite's scenarios."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from reasonblocks.exceptions import Unavailable
from reasonblocks.requests import Evaluate, Retrieve
from reasonblocks.types import ETrace, Evaluation, Memories, Pattern, Usage

from ._scripted import ScriptedEvaluator, ScriptedReasonBlocks, ScriptedStore
from .script import Script, Turn, tool_call, tool_result

RULE_TEXT = "Check before you say that it is done."
RULE = Pattern(id="rule", tier="e3", fields={"instruction": RULE_TEXT})
ClientT = TypeVar("ClientT", bound=ScriptedReasonBlocks)
WORDS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def looping(calls: int = 5, run_id: str = "run", who: str = "", **options: Any) -> Script:
    """Return a script whose agent runs the same failing tests in each call but the last.

    `who` is part of every text and id, so that the runs of several agents can be told apart.
    """
    turns = [busy_turn(at, who) for at in range(calls - 1)]
    last = Turn(text=f"{who}The tests pass now.", usage=Usage(input=9, output=1))
    return Script(turns=(*turns, last), run_id=run_id, **{"task": f"{who}Fix the failing tests.", **options})


def busy_turn(at: int, who: str = "", **options: Any) -> Turn:
    """Return a turn with one tool call, whose text, id and result hold its number."""
    name = f"{who}c{at}"
    return replace(
        Turn(
            text=f"{who}I run the tests for the {WORDS[at % len(WORDS)]} time; attempt {at} may pass.",
            tool_calls=(tool_call(name, "run_tests", {"attempt": at}),),
            results=(tool_result(name, f"{who}attempt {at}: 3 failed", is_error=False),),
            usage=Usage(input=100 + at, output=10),
        ),
        **options,
    )


def firing(at: int) -> Evaluation:
    """Return an evaluation of step `at` that injects a text of its own."""
    return Evaluation(
        inject=True,
        intervention_text=f"Step {at} ran the tests as before. Read the failing test first.",
        fired=("semantic_loop",),
        scores={"semantic_loop": 0.9},
        composite=0.225,
        failure_type="loop",
        injection_path="monitor",
        intervention_source="monitor",
        monitor="semantic_loop",
    )


def client(*, calls: int = 40, rules: Sequence[Pattern] = (RULE,), **options: Any) -> ScriptedReasonBlocks:
    """Return a client whose monitor fires on every step, with difficulty 0.4, and one standing rule in its store."""
    return client_of(ScriptedReasonBlocks, calls=calls, rules=rules, **options)


def client_of(kind: type[ClientT], *, calls: int = 40, rules: Sequence[Pattern] = (RULE,), **options: Any) -> ClientT:
    """Return such a client as an instance of `kind`."""
    given: dict[str, Any] = {
        "evaluator": ScriptedEvaluator([firing(at) for at in range(calls)]),
        "pattern_store": ScriptedStore(lambda request: _of_tier(rules, request)),
        "scorer": lambda step: 0.4,
        "strict": True,
    }
    return kind(**{**given, **options})


def _of_tier(patterns: Sequence[Pattern], request: Retrieve) -> list[ETrace]:
    return [ETrace(pattern=pattern, similarity=0.95) for pattern in patterns if pattern.tier == request.tier]


class Unreachable:
    """Evaluator and store that are unavailable."""

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
        raise Unavailable("a backend", "it is down")

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        raise Unavailable("a backend", "it is down")


class SlowStore:
    """Store that answers after some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        time.sleep(self._seconds)
        return ()


class HangingStore:
    """Store that answers only once it is released. `asked` counts the requests."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.asked = 0

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        self.asked += 1
        self.released.wait(60)
        return ()


class InvalidStore:
    """Store whose answers do not satisfy its port: a similarity that is not a number."""

    def search(self, request: Retrieve) -> tuple[ETrace, ...]:
        return (ETrace(pattern=RULE, similarity=float("nan")),)


class InvalidEvaluator:
    """Evaluator whose answers do not satisfy its port: a dict in place of an `Evaluation`."""

    def evaluate(self, request: Evaluate) -> tuple[Evaluation, Memories]:
        nonsense: Any = ({"inject": "yes"}, None)
        answer: tuple[Evaluation, Memories] = nonsense
        return answer
