"""What the tests of one behaviour need around it: a steered agent with a scripted model, and a strict client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents import create_agent

from reasonblocks.testing import ScriptedEvaluator, ScriptedReasonBlocks, ScriptedStore
from reasonblocks.types import ETrace, Evaluation, Pattern
from tests.langchain.scripted import ScriptedModel, calls

RULE = Pattern(id="rule", tier="e3", fields={"instruction": "Check before you say that it is done."})
QUESTION = {"messages": [("user", "Fix the failing tests.")]}
Config = Mapping[str, Any]


def look(path: str) -> str:
    """Looks at a file."""
    return f"{path} is empty"


def crash(path: str) -> str:
    """Raises."""
    raise LookupError(path)


def looks(count: int) -> list[Any]:
    """So many turns that call `look`, and one that ends."""
    return [*(calls("look", f"I look at file {at}.", id=f"c{at}", path=f"f{at}") for at in range(count)), "All seen."]


def speaking(at: int) -> Evaluation:
    return Evaluation(
        inject=True,
        intervention_text=f"Step {at} looked again. Read what it said.",
        fired=("semantic_loop",),
        scores={"semantic_loop": 0.9},
        composite=0.225,
        failure_type="loop",
        monitor="semantic_loop",
    )


def client(**options: Any) -> ScriptedReasonBlocks:
    """Every step wants its own text said, at a middling difficulty; one standing rule is in the store."""
    given: dict[str, Any] = {
        "evaluator": ScriptedEvaluator([speaking(at) for at in range(100)]),
        "pattern_store": ScriptedStore(lambda asked: [ETrace(pattern=RULE)] if asked.tier == "e3" else []),
        "scorer": lambda step: 0.4,
        "strict": True,
    }
    return ScriptedReasonBlocks(**{**given, **options})


def agent(model: ScriptedModel, *middleware: Any, tools: Sequence[Any] = (look,), **options: Any) -> Any:
    given: dict[str, Any] = {"system_prompt": "You fix bugs.", **options}
    return create_agent(model, tools=list(tools), middleware=list(middleware), **given)


def thread(name: str = "t") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}
