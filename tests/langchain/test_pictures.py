"""Pictures, files and structured results in LangChain's messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, messages_to_dict
from langchain_core.messages.content import (
    create_audio_block,
    create_file_block,
    create_image_block,
    create_plaintext_block,
    create_text_block,
    create_video_block,
)

from reasonblocks import ReasonBlocks
from reasonblocks.events import StepEvent, completed_of
from reasonblocks_langchain._convert import completed_step, task_of
from reasonblocks_testing import RecordingSink
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.langchain.world import QUESTION, agent, scripted
from tests.pictures import CONTENTS, OTHER, PDF, PNG, data, name

ASKED = AIMessage("", id="a", tool_calls=[{"id": "c", "name": "look", "args": {}}])
LISTS = {shape: result for shape, result in CONTENTS.items() if isinstance(result[0], list)}
BLOCKS: dict[str, tuple[list[Any], str]] = {
    "image": ([create_image_block(base64=data(PNG), mime_type="image/png")], name(PNG)),
    "image by address": ([create_image_block(url="https://a.b/c.png")], "[image https://a.b/c.png]"),
    "image by id": ([create_image_block(file_id="file-1")], "[image file-1]"),
    "audio": ([create_audio_block(base64=data(b"RIFF"), mime_type="audio/wav")], name(b"RIFF", "audio")),
    "video": ([create_video_block(base64=data(b"ftyp"), mime_type="video/mp4")], name(b"ftyp", "video")),
    "pdf": ([create_file_block(base64=data(PDF), mime_type="application/pdf")], name(PDF, "document")),
    "text": ([create_plaintext_block(text="Chapter 1")], "Chapter 1"),
    "mixed": (
        [create_text_block("One:"), create_image_block(base64=data(OTHER), mime_type="image/png"), "Done."],
        f"One:\n{name(OTHER)}\nDone.",
    ),
}
"""Standard blocks, as tools of LangChain 1 and the adapters of MCP servers return them."""


def output_in(messages: Sequence[BaseMessage]) -> str:
    step = completed_step(messages, "a")
    assert step is not None
    return step.tool_results[0].output


@pytest.mark.parametrize(("content", "text"), {**LISTS, **BLOCKS}.values(), ids=[*LISTS, *BLOCKS])
def test_a_tool_message_is_read_as_its_texts_and_pictures(content: list[Any], text: str) -> None:
    assert output_in([ASKED, ToolMessage(content, tool_call_id="c")]) == text


@pytest.mark.parametrize(("content", "text"), {**LISTS, **BLOCKS}.values(), ids=[*LISTS, *BLOCKS])
def test_a_task_is_read_as_its_texts_and_pictures(content: list[Any], text: str) -> None:
    assert task_of([HumanMessage(content)], None) == text


@pytest.mark.parametrize(("content", "text"), BLOCKS.values(), ids=BLOCKS)
def test_saved_messages_have_the_texts_of_the_live_ones(content: list[Any], text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(messages_to_dict([ASKED, ToolMessage(content, tool_call_id="c")])), encoding="utf-8")
    (run,) = read_runs(str(path))
    assert isinstance(run, RecordedRun)
    assert run.steps[0].tool_results[0].output == text


def test_each_screenshot_of_an_agent_is_a_result_of_its_own() -> None:
    shots = {"f0": PNG, "f1": OTHER}

    def look(path: str) -> list[Any]:
        """Looks at a page."""
        return [create_image_block(base64=data(shots[path]), mime_type="image/png")]

    sink = RecordingSink()
    rb = ReasonBlocks(sinks=[sink])
    agent(scripted(2), rb.middleware(), tools=[look]).invoke(QUESTION)
    rb.close()
    steps = [completed_of(event) for event in sink.events if isinstance(event, StepEvent)]
    outputs = [result.output for step in steps for result in step.tool_results]
    assert outputs == [name(PNG), name(OTHER)]
