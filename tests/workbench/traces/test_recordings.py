"""Recordings of real frameworks, made by `tools/trace_fixtures.py`, are read as the run that they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reasonblocks.types import Step, ToolCall, ToolResult, Usage
from reasonblocks_workbench.traces import READERS, Record, read_records
from reasonblocks_workbench.traces._run import Reader
from tests.workbench.traces.conftest import FIXTURES, only

MADE = {
    "openai_chat.jsonl": "openai-chat",
    "openai_chat_langchain.json": "openai-chat",
    "openai_responses.json": "openai-responses",
    "openai_agents.json": "openai-responses",
    "openai_agents_mcp.json": "openai-responses",
    "anthropic.json": "anthropic",
    "claude_code.jsonl": "claude-code",
    "claude_code_ends.jsonl": "claude-code",
    "claude_code_branches.jsonl": "claude-code",
    "claude_code_compacted.jsonl": "claude-code",
    "ai_sdk.json": "ai-sdk",
    "bedrock.json": "bedrock",
    "codex.jsonl": "codex",
    "pi.jsonl": "pi",
    "mini_swe_agent.json": "mini-swe-agent",
}
OF_MESSAGES = [name for name, reader in MADE.items() if reader.startswith(("openai", "anthropic"))]
of_messages = pytest.mark.parametrize("name", OF_MESSAGES)


def looks(*pairs: tuple[str, str], text: str) -> Step:
    return Step(
        thought=text,
        tool_calls=tuple(ToolCall(id=key, name="look", arguments={"path": path}) for key, path in pairs),
        tool_results=tuple(ToolResult(call_id=key, name="look", output=f"{path} is empty") for key, path in pairs),
    )


RUN = (
    looks(("c1", "a.py"), ("c2", "b.py"), text="I look at both files."),
    looks(("c3", "c.py"), text="b.py is missing. I look at c.py."),
    Step(thought="The tests pass."),
    Step(thought="The linter passes.", user_text="And now the linter."),
)


def in_common(step: Step) -> Step:
    """A step without what only some formats have: reasoning, and the flag and the text of an error."""
    results = (
        replace(one, is_error=None, output="b.py is empty" if one.call_id == "c2" else one.output)
        for one in step.tool_results
    )
    return replace(step, reasoning="", tool_results=tuple(results))


@of_messages
def test_the_same_run_has_the_same_steps_in_every_format(name: str) -> None:
    run = only(FIXTURES / name)
    assert tuple(map(in_common, run.steps)) == RUN
    assert (run.task, run.outcome, run.line) == ("Fix the failing tests.", None, 1)


@pytest.mark.parametrize("name", ["openai_chat.jsonl", "openai_responses.json", "anthropic.json"])
def test_answers_as_an_api_returns_them_have_their_tokens_and_their_model(name: str) -> None:
    run = only(FIXTURES / name)
    assert run.model == "scripted-model"
    assert [(one.input, one.output) for one in run.usages] == [(100, 10), (200, 20), (300, 30), (400, 40)]
    assert run.usages[0] == Usage(
        input=100, output=10, cache_read=40, cache_write=20, reasoning=run.usages[0].reasoning
    )


@pytest.mark.parametrize("name", [name for name in OF_MESSAGES if "langchain" not in name])
def test_visible_reasoning_is_kept(name: str) -> None:
    assert only(FIXTURES / name).steps[0].reasoning == "Both files may matter."


def test_only_anthropic_marks_errors() -> None:
    flags = {name: only(FIXTURES / name).steps[0].is_error for name in OF_MESSAGES}
    assert [name for name, flag in flags.items() if flag] == ["anthropic.json"]


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.glob("*.json*")))
def test_every_recording_is_claimed_by_one_reader(name: str) -> None:
    records = [record for record in read_records(str(FIXTURES / name)) if isinstance(record, Record)]
    readers = [reader for reader in READERS if isinstance(reader, Reader)]
    claims = {reader.name for record in records for reader in readers if reader.sniff(record.value)}
    assert len(claims) == 1
    assert claims == {MADE[name]} if name in MADE else claims.isdisjoint(MADE.values())
