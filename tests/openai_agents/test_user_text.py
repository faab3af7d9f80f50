"""What the user says during a run, as the SDK's requests have it."""

from __future__ import annotations

from typing import Any

import pytest
from agents import RunState
from agents.run_config import CallModelData, ModelInputData

from reasonblocks.messages.openai import is_output
from reasonblocks_openai_agents import openai_model, steering_of
from tests.openai_agents.other_process import alone, approved
from tests.openai_agents.world import Place, Result, fixer, in_turn, looks, place, whole_and_streamed
from tests.second_message import AT, LOOKS, SAID, Heard, check
from tests.steered import steering


def says(data: CallModelData[Any]) -> ModelInputData:
    """A caller's own filter, which hands on what the user says while the agent works."""
    items = list(data.model_data.input)
    if sum(map(is_output, items)) == AT:
        items.append({"role": "user", "content": SAID})
    return ModelInputData(input=items, instructions=data.model_data.instructions)


@whole_and_streamed
def test_a_message_in_a_request_of_a_steered_model_moves_the_mark(way: str) -> None:
    heard = Heard()
    with place(in_turn(*looks(LOOKS)), way) as here:
        model = openai_model(steering(scorer=heard), here.model("own"))
        here.plain(fixer(model=model), run_config=here.config(call_model_input_filter=says))
    check(heard.texts, model.trace.state)


@pytest.mark.skipif(not hasattr(RunState, "add_input"), reason="this SDK takes no input for a run that waits")
@whole_and_streamed
def test_a_message_for_a_run_that_waits_moves_the_mark(way: str) -> None:
    """Each part has the snapshot of the part before, as another process has."""
    heard = Heard()

    def part(here: Place, asked: Any = None, **options: Any) -> Result:
        return here.run(steering(scorer=heard), alone(), *([] if asked is None else [asked]), **options)

    with place(in_turn(*looks(LOOKS)), way) as here:
        result, parts = part(here, run_id="run"), 1
        while result.interruptions:
            state = here.until(approved(alone(), result.to_state().to_json()))
            if parts == AT:
                state.add_input(SAID)
            result = part(here, state, snapshot=steering_of(result).snapshot())
            parts += 1
    check(heard.texts, steering_of(result).trace.state)


def test_the_task_of_a_later_run_on_a_conversation_is_no_new_text() -> None:
    heard = Heard()
    with place(in_turn(*looks(1), *looks(1, "again"))) as here:
        rb = steering(scorer=heard)
        before = here.run(rb, fixer()).to_input_list()
        here.run(rb, fixer(), [*before, {"role": "user", "content": "And now the linter."}])
    assert heard.texts == [""] * 4
