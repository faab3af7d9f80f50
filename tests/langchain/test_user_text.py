"""What the user says during a run, as LangChain's messages have it."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from reasonblocks_langchain import middleware
from reasonblocks_langchain._convert import completed_step
from tests.langchain.scripted import ScriptedModel, by_position
from tests.langchain.world import QUESTION, agent, looks, scripted, thread
from tests.second_message import AT, LOOKS, SAID, Heard, check
from tests.steered import steering


def answers(messages: list[AnyMessage]) -> int:
    return sum(isinstance(message, AIMessage) for message in messages)


class Says(AgentMiddleware[Any, Any, Any]):
    """Hands on what the user says while the agent works."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        messages = state["messages"]
        said = answers(messages) == AT and not isinstance(messages[-1], HumanMessage)
        return {"messages": [HumanMessage(SAID)]} if said else None


def test_a_message_that_another_middleware_adds_moves_the_mark() -> None:
    heard = Heard()
    mw = middleware(steering(scorer=heard))
    asyncio.run(agent(scripted(LOOKS), mw, Says()).ainvoke(QUESTION))
    check(heard.texts, mw.trace.state)


def test_a_message_that_is_added_while_the_run_waits_moves_the_mark() -> None:
    heard = Heard()
    mw = middleware(steering(scorer=heard))
    waiting: dict[str, Any] = {"checkpointer": InMemorySaver(), "interrupt_before": [f"{mw.name}.before_model"]}
    fixer = agent(scripted(LOOKS), mw, **waiting)
    fixer.invoke(QUESTION, thread())
    while (state := fixer.get_state(thread())).next:
        if answers(state.values["messages"]) == AT:
            fixer.update_state(thread(), {"messages": [HumanMessage(SAID)]}, as_node="tools")
        fixer.invoke(None, thread())
    check(heard.texts, mw.trace.state)


def test_the_task_of_a_later_run_on_a_thread_is_no_new_text() -> None:
    heard = Heard()
    mw = middleware(steering(scorer=heard))
    turns = [*looks(1), *looks(1)]
    fixer = agent(ScriptedModel(script=by_position(*turns)), mw, checkpointer=InMemorySaver())
    fixer.invoke(QUESTION, thread())
    fixer.invoke({"messages": [("user", "And now the linter.")]}, thread())
    assert heard.texts == [""] * len(turns)


# ------------------------------------------------------------ the step that an answer began

HISTORY: list[BaseMessage] = [
    HumanMessage("Fix it."),
    AIMessage("Hm.", id="a1"),
    ToolMessage("empty", tool_call_id="c"),
    HumanMessage(SAID),
    AIMessage("I see.", id="a2"),
    HumanMessage("Be quick."),
]


def said(messages: list[BaseMessage], answer: str, before_run: str | None = None) -> str:
    step = completed_step(messages, answer, before_run)
    assert step is not None
    return step.user_text


def test_a_step_has_what_came_before_its_own_answer_alone() -> None:
    assert [said(HISTORY, answer) for answer in ("a1", "a2")] == ["", SAID]


def test_after_the_answers_of_an_earlier_run_the_message_is_the_task() -> None:
    assert said(HISTORY, "a2", before_run="a1") == ""


def test_a_summary_is_not_what_the_user_said() -> None:
    summary = HumanMessage("So far: ...", additional_kwargs={"lc_source": "summarization"})
    assert said([*HISTORY[:3], summary, HISTORY[4]], "a2") == ""
    assert said([summary, HISTORY[4]], "a2") == ""
