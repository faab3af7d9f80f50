"""Pictures, files and structured results in the SDK's items, and as its tools return them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from agents import ItemHelpers, ToolOutputFileContent, ToolOutputImage, ToolOutputText
from openai.types.responses import ResponseFunctionToolCall

from reasonblocks.types import ToolResult
from reasonblocks_openai_agents._convert import ToolCalls, completed_step, task_of
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.pictures import CONTENTS, OTHER, PDF, PNG, data, name, url

CALL = ResponseFunctionToolCall(call_id="c", name="look", arguments="{}", type="function_call", id="f")
RETURNED: dict[str, tuple[Any, str]] = {
    "image": (ToolOutputImage(image_url=url(PNG)), name(PNG)),
    "image, as a dict": ({"type": "image", "image_url": url(PNG)}, name(PNG)),
    "image by address": (ToolOutputImage(image_url="https://a.b/c.png"), "[image https://a.b/c.png]"),
    "image by id": (ToolOutputImage(file_id="file-1"), "[image file-1]"),
    "file": (ToolOutputFileContent(file_data=data(b"PK"), filename="a.zip"), name(b"PK", "file")),
    "pdf": (ToolOutputFileContent(file_data=url(PDF, "application/pdf")), name(PDF, "document")),
    "file by address": (ToolOutputFileContent(file_url="https://a.b/c.zip"), "[file https://a.b/c.zip]"),
    "mixed": (
        [ToolOutputText(text="One:"), ToolOutputImage(image_url=url(PNG)), ToolOutputImage(image_url=url(OTHER))],
        f"One:\n{name(PNG)}\n{name(OTHER)}",
    ),
    "value": ({"rows": [1]}, "{'rows': [1]}"),
    "values": ([{"id": 1}], "[{'id': 1}]"),
    "text": ("as it is", "as it is"),
}
"""Results of tools, each with the text that the model reads: of a value, Python's own form."""


def output_in(items: list[Any], ended: Mapping[str, ToolResult] = MappingProxyType({})) -> str:
    return completed_step(items, None, ended, ()).tool_results[0].output


def item_of(returned: Any) -> dict[str, Any]:
    return dict(ItemHelpers.tool_call_output_item(CALL, returned))


@pytest.mark.parametrize(("returned", "text"), RETURNED.values(), ids=RETURNED)
def test_a_result_is_read_from_the_request_as_its_texts_and_pictures(returned: Any, text: str) -> None:
    assert output_in([CALL, item_of(returned)]) == text


@pytest.mark.parametrize(("returned", "text"), RETURNED.values(), ids=RETURNED)
def test_a_result_that_no_request_holds_has_the_same_text(returned: Any, text: str) -> None:
    calls = ToolCalls()
    calls.end("c", returned)
    assert output_in([CALL], calls.ended) == text


@pytest.mark.parametrize(("content", "text"), CONTENTS.values(), ids=CONTENTS)
def test_a_task_is_read_as_its_texts_and_pictures(content: Any, text: str) -> None:
    assert task_of([{"role": "user", "content": content}]) == text


@pytest.mark.parametrize(("returned", "text"), RETURNED.values(), ids=RETURNED)
def test_a_saved_result_has_the_text_of_the_live_one(returned: Any, text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps([CALL.model_dump(), item_of(returned)]), encoding="utf-8")
    (run,) = read_runs(str(path))
    assert isinstance(run, RecordedRun)
    assert run.steps[0].tool_results[0].output == text
