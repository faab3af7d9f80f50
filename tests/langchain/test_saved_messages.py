"""Messages that LangChain converted to the form of another provider are read as its own are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from langchain_core.messages import convert_to_openai_messages, messages_to_dict

from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.langchain.world import QUESTION, agent, scripted


def read(path: Path, messages: Any) -> RecordedRun:
    path.write_text(json.dumps(messages))
    (run,) = read_runs(str(path))
    assert isinstance(run, RecordedRun)
    return run


def test_an_agents_messages_in_the_form_of_openai_are_the_same_steps(tmp_path: Path) -> None:
    messages = agent(scripted(2)).invoke(QUESTION)["messages"]
    own = read(tmp_path / "own.json", messages_to_dict(messages))
    converted = read(tmp_path / "converted.json", convert_to_openai_messages(messages))
    assert (converted.steps, converted.task) == (own.steps, own.task)
    assert len(own.steps) == 3
