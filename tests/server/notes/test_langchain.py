"""A note that a person posts to a real server is told to a live LangChain agent, in one request of its model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.server.notes.world import SAID, Operator, carrying

pytest.importorskip("langchain", reason="needs LangChain")


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_a_live_agent_is_told_once(operator: Operator, mode: str) -> None:
    from tests.langchain.scripted import ScriptedModel, by_position
    from tests.langchain.world import QUESTION, agent, looks

    run_id, told = f"langchain-{mode}", []

    def look(path: str) -> str:
        """Looks at a file; the operator writes while the agent looks at the second one."""
        if path == "f1":
            told.append(operator.say(run_id))
        return f"{path} is empty"

    model, rb = ScriptedModel(script=by_position(*looks(5))), operator.rb()
    steering: Any = rb.middleware(run_id=run_id)
    told_agent = agent(model, steering, tools=(look,))
    done = asyncio.run(told_agent.ainvoke(QUESTION)) if mode == "ainvoke" else told_agent.invoke(QUESTION)
    rb.close()
    assert carrying([seen.text for seen in model.seen]) == [0, 0, 1, 0, 0, 0]
    assert SAID in model.seen[2].text
    assert not any(SAID in message.text for message in done["messages"]), "the note stays out of the history"
    (note_id,) = told
    operator.check_told(run_id, note_id, steering.step_log, 2)
