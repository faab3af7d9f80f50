"""Names that come twice: ids of answers that a model repeats, ids of runs that a caller repeats."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from reasonblocks.types import Step
from reasonblocks_langchain import middleware
from tests.langchain.scripted import ScriptedModel, in_order
from tests.langchain.world import QUESTION, Way, agent, both_ways, looks, thread
from tests.steered import steering

FIVE = [f"I look at file {at}." for at in range(5)]


LOSES_ITS_WAY = pytest.mark.xfail(
    version("langchain").startswith("1.2."),
    reason="LangChain 1.2 itself finds no next node after an answer whose id is that of an older message",
    raises=KeyError,
    strict=False,
)


def repeating(*ids: str) -> ScriptedModel:
    """Five turns that call `look` and one that ends; the ids of the answers are these, again and again."""
    turns = [*looks(5)[:-1], AIMessage("All seen.")]
    return ScriptedModel(
        script=in_order(*(turn.model_copy(update={"id": ids[at % len(ids)]}) for at, turn in enumerate(turns)))
    )


@both_ways
def test_a_model_that_repeats_the_ids_of_its_answers_is_steered_on_every_call(way: Way) -> None:
    mw, model = middleware(steering()), repeating("same")
    way(agent(model, mw))
    assert len(model.seen) == 6
    assert [(entry.step, entry.attempts) for entry in mw.step_log] == [(at, 1) for at in range(6)]
    assert [entry.thought_preview for entry in mw.step_log] == ["", *FIVE]
    assert [at for at, seen in enumerate(model.seen) if "looked again" in seen.text] == [1, 4]
    assert mw.final is not None
    assert mw.final.thought_preview == "All seen."


@LOSES_ITS_WAY
def test_a_model_that_cycles_through_a_few_ids_has_an_entry_a_call() -> None:
    mw, model = middleware(steering()), repeating("one", "two")
    agent(model, mw).invoke(QUESTION)
    assert len(model.seen) == 6
    assert [(entry.step, entry.attempts) for entry in mw.step_log] == [(at, 1) for at in range(6)]


@LOSES_ITS_WAY
def test_answers_with_the_id_of_an_earlier_run_of_the_thread_are_steps_too() -> None:
    saver = InMemorySaver()
    for _ in range(2):
        mw = middleware(steering())
        agent(repeating("same"), mw, checkpointer=saver).invoke(QUESTION, thread())
        assert [(entry.step, entry.attempts) for entry in mw.step_log] == [(at, 1) for at in range(6)]


def test_what_came_back_in_earlier_steps_is_not_judged_again() -> None:
    judged: list[str] = []

    def scorer(step: Step) -> float:
        judged.append(step.observation)
        return 0.4

    mw = middleware(steering(scorer=scorer))
    agent(repeating("same"), mw).invoke(QUESTION)
    assert judged == [*(f"f{at} is empty" for at in range(5)), ""]


class Twice(AgentMiddleware[Any, Any, Any]):
    """Asks again, whatever came: outside of us."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        handler(request)
        return handler(request)


def test_a_call_that_is_made_again_stays_one_step_with_repeated_ids_too() -> None:
    turns = [turn for turn in looks(2)[:-1] for _ in range(2)]
    answers = [turn.model_copy(update={"id": "same"}) for turn in (*turns, AIMessage("Done."))]
    mw = middleware(steering())
    agent(ScriptedModel(script=in_order(*answers)), Twice(), mw).invoke(QUESTION)
    assert [(entry.step, entry.attempts) for entry in mw.step_log] == [(0, 2), (1, 2), (2, 2)]
