"""A mapped model of the caller's that cannot even be looked at costs the run its route, and nothing else."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from reasonblocks_langchain import middleware
from tests.langchain.scripted import ScriptedModel, by_position
from tests.langchain.world import QUESTION, agent, looks
from tests.steered import steering

TURNS = 6


class Hostile:
    """Whatever is asked of it raises."""

    def _raises(self, *given: object) -> Any:
        raise LookupError("hostile")

    __class__ = property(_raises)
    __eq__ = __hash__ = __repr__ = __str__ = __bool__ = __len__ = __getattr__ = __call__ = _raises


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_route_that_cannot_be_looked_at_is_said_once_and_the_run_is_steered(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel(script=by_position(*looks(TURNS)))
    mw = middleware(steering(scorer=lambda step: 0.7, model_routing={"NORMAL": Hostile(), "SLOW": Hostile()}))
    steered = agent(model, mw)
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        result = steered.invoke(QUESTION) if way == "sync" else asyncio.run(steered.ainvoke(QUESTION))
    assert result["messages"][-1].content == "All seen."
    assert {entry.model_id for entry in mw.step_log} == {"scripted-1"}
    assert [entry.route for entry in mw.step_log] == [None] * (TURNS + 1)
    assert "Step 0 looked again" in str(model.seen[1].messages[-1].content)
    said = [record.getMessage() for record in caplog.records if "cannot be built" in record.getMessage()]
    assert [text.split(": ")[1].split(" cannot")[0] for text in said] == ["the model for NORMAL", "the model for SLOW"]
