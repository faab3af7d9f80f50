"""Pictures, files and structured results in the CLI's messages and in the inputs of its hooks."""

from __future__ import annotations

from typing import Any

import pytest
from claude_agent_sdk import ToolResultBlock, UserMessage

from reasonblocks_claude_agent._stream import Stream
from reasonblocks_claude_agent.convert import batch_step
from tests.pictures import CONTENTS, RESULTS

Content = Any


def call(response: Content) -> dict[str, Any]:
    return {"tool_name": "look", "tool_input": {}, "tool_use_id": "c", "tool_response": response}


@pytest.mark.parametrize(("content", "text"), CONTENTS.values(), ids=CONTENTS)
def test_a_result_on_the_stream_is_read_as_its_texts_and_pictures(content: Content, text: str) -> None:
    stream = Stream()
    stream.saw(UserMessage(content=[ToolResultBlock(tool_use_id="c", content=content)]))
    assert stream.results["c"].output == text


@pytest.mark.parametrize(("response", "text"), RESULTS.values(), ids=RESULTS)
def test_the_response_of_a_hook_is_read_as_its_texts_pictures_and_values(response: Content, text: str) -> None:
    (result,) = batch_step([call(response)], None, {}).tool_results
    assert result.output == text
