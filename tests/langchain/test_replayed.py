"""A saved run, replayed, has the step log of the live run: both are read by the same functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, messages_to_dict
from langchain_core.tools import StructuredTool, ToolException

from reasonblocks import LocalStore, ReasonBlocks
from reasonblocks.session import SteeringSession
from reasonblocks.types import StepLogEntry
from reasonblocks_langchain import middleware
from reasonblocks_workbench.replay import replay
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.langchain.scripted import ScriptedModel, Turn, by_position, in_order
from tests.langchain.world import QUESTION, agent, look

UNSAVED = frozenset({"timestamp", "latency_ms", "overhead_ms"})
"""Fields that the clock fills in; no message holds a time."""
UNSAVED_OF_RETRIES = UNSAVED | {"attempts"}
"""Messages hold the answers only, not the attempts that failed before them."""
UNSAVED_OF_ROUTED = UNSAVED | {"route", "model_id", "cache_tokens_at_risk"}
"""No message holds the route, nor the cache that it puts at risk; a recorded run has one model, its first answer's."""

Entry = dict[str, Any]
Provider = Callable[[int], dict[str, Any]]
"""The fields that an answer of this provider has beside its calls, by its number."""


def standard(at: int) -> dict[str, Any]:
    usage = {
        "input_tokens": 900 + at,
        "output_tokens": 40,
        "total_tokens": 940 + at,
        "input_token_details": {"cache_read": 700, "cache_creation": 30 + at},
        "output_token_details": {"reasoning": 12},
    }
    content = [{"type": "reasoning", "reasoning": f"Which file is next? {at}"}, {"type": "text", "text": thought(at)}]
    return {"content": content, "usage_metadata": usage}


def anthropic(at: int) -> dict[str, Any]:
    details = {
        "cache_read": 700,
        "cache_creation": 0,
        "ephemeral_5m_input_tokens": 20 + at,
        "ephemeral_1h_input_tokens": 3,
    }
    usage = {"input_tokens": 900, "output_tokens": 40, "total_tokens": 940, "input_token_details": details}
    content = [
        {"type": "thinking", "thinking": f"Which file is next? {at}", "signature": "s"},
        {"type": "text", "text": thought(at)},
    ]
    return {"content": content, "usage_metadata": usage, "response_metadata": {"stop_reason": "tool_use"}}


def openai_summary(at: int) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": "Which file is next?"}, {"type": "summary_text", "text": str(at)}]
    counts = {"prompt_tokens": 900 + at, "completion_tokens": 40}
    content = [{"type": "reasoning", "summary": summary}, {"type": "output_text", "text": thought(at)}]
    return {"content": content, "response_metadata": {"token_usage": counts}}


def raw_anthropic(at: int) -> dict[str, Any]:
    counts = {
        "input_tokens": 900,
        "output_tokens": 40,
        "cache_read_input_tokens": 700,
        "cache_creation_input_tokens": 20 + at,
    }
    return {"content": thought(at), "response_metadata": {"usage": counts}}


def bedrock(at: int) -> dict[str, Any]:
    reasoning = {"type": "reasoning_content", "reasoning_content": {"text": f"Which file? {at}", "signature": "s"}}
    metadata = {"model_name": "", "model_id": "bedrock-1", "stopReason": "tool_use"}
    return {"content": [reasoning, {"type": "text", "text": thought(at)}], "response_metadata": metadata}


def deepseek(at: int) -> dict[str, Any]:
    usage = {"input_tokens": 900, "output_tokens": 40, "total_tokens": 940}
    extra = {"reasoning_content": f"Which file is next? {at}"}
    return {"content": thought(at), "additional_kwargs": extra, "usage_metadata": usage}


PROVIDERS = (standard, anthropic, openai_summary, raw_anthropic, bedrock, deepseek)


def thought(at: int) -> str:
    return f"Hmm, maybe the parser is wrong, I am not sure. Let me try again ({at})."


def call(id: str, name: str, **arguments: object) -> dict[str, Any]:
    return {"id": id, "name": name, "args": arguments}


def turns(provider: Provider) -> list[Turn]:
    """A run with parallel calls, failed calls, an answer without text, and one test again and again."""
    several = [call("c0", "look", path="a.py"), call("c1", "check", path="b.py")]
    found = [
        AIMessage(**provider(0), tool_calls=several),
        AIMessage(**provider(1), tool_calls=[call("c2", "look", path="b.py")]),
        AIMessage(**{**provider(2), "content": ""}, tool_calls=[call("c3", "look", path="c.py")]),
        *(AIMessage(**provider(at), tool_calls=[call(f"c{at}", "check", path="b.py")]) for at in range(4, 12)),
        AIMessage(**{**provider(12), "content": "All tests pass."}),
    ]
    return [*found]


def check(path: str) -> str:
    """Run the tests of a file."""
    raise ToolException(f"FAILED {path}::test_parse - AssertionError: assert 1 == 2")


CHECK = StructuredTool.from_function(check, handle_tool_error=True)


def client(**options: Any) -> ReasonBlocks:
    return ReasonBlocks(pattern_store=LocalStore(), strict=True, **options)


def live(model: ScriptedModel, *others: Any, **options: Any) -> tuple[Sequence[StepLogEntry], list[BaseMessage]]:
    """Run a real agent; return its step log and its messages."""
    with middleware(client(**options)) as mw:
        result = agent(model, *others, mw, tools=(look, CHECK)).invoke(QUESTION, {"recursion_limit": 100})
    return mw.step_log, result["messages"]


class Recorded:
    """Makes one session, and keeps it."""

    def __init__(self) -> None:
        self._client = client()
        self.made: list[SteeringSession] = []

    def session(self, **given: Any) -> SteeringSession:
        self.made.append(self._client.session(**given))
        return self.made[-1]


def replayed(messages: list[BaseMessage], folder: Path) -> Sequence[StepLogEntry]:
    """Save the messages, replay the file, and return the step log."""
    file = folder / "run.json"
    file.write_text(json.dumps(messages_to_dict(messages)), encoding="utf-8")
    (run,) = read_runs(str(file))
    assert isinstance(run, RecordedRun)
    recorded = Recorded()
    replay(recorded, run)
    return recorded.made[0].step_log


def saved(entries: Sequence[StepLogEntry], unsaved: frozenset[str]) -> list[Entry]:
    return [{key: value for key, value in asdict(entry).items() if key not in unsaved} for entry in entries]


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.__name__)
def test_a_replayed_run_has_the_step_log_of_the_live_one(provider: Provider, tmp_path: Path) -> None:
    entries, messages = live(ScriptedModel(script=by_position(*turns(provider)), usage=False))
    assert saved(replayed(messages, tmp_path), UNSAVED) == saved(entries, UNSAVED)


def test_the_compared_run_has_all_that_could_differ() -> None:
    entries, messages = live(ScriptedModel(script=by_position(*turns(anthropic)), usage=False))
    called = [entry for entry in entries if entry.model_id]
    assert len(called) == len(turns(anthropic))
    assert all(entry.tokens and entry.cache_read_tokens and entry.cache_write_tokens for entry in called)
    assert any(entry.monitors_fired for entry in entries)
    assert any(entry.intervention_texts for entry in entries)
    assert any(len(entry.tool_calls) > 1 for entry in entries)
    assert any(isinstance(message, ToolMessage) and message.status == "error" for message in messages)


def test_the_result_of_a_malformed_call_is_known_only_to_the_replay(tmp_path: Path) -> None:
    """LangChain adds its own error result for such a call to the request, after steering has decided."""
    bad = {"id": "bad", "name": "look", "args": '{"path": ', "error": "no JSON"}
    first, *others = turns(standard)
    assert isinstance(first, AIMessage)
    malformed = first.model_copy(update={"invalid_tool_calls": [bad]})
    entries, messages = live(ScriptedModel(script=by_position(malformed, *others), usage=False))
    known = [
        message for message in messages if not (isinstance(message, ToolMessage) and message.tool_call_id == "bad")
    ]
    assert saved(replayed(known, tmp_path), UNSAVED) == saved(entries, UNSAVED)


def test_a_retried_call_differs_in_its_attempts_alone(tmp_path: Path) -> None:
    first, *others = turns(standard)
    model = ScriptedModel(script=in_order(first, ConnectionError("down"), *others), usage=False)
    entries, messages = live(model, ModelRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False))
    assert max(entry.attempts for entry in entries) == 2
    assert saved(replayed(messages, tmp_path), UNSAVED_OF_RETRIES) == saved(entries, UNSAVED_OF_RETRIES)


def test_a_routed_run_differs_in_what_routing_alone_knows(tmp_path: Path) -> None:
    script = by_position(*turns(standard))
    strong = ScriptedModel(script=script, usage=False, model_name="strong")
    model = ScriptedModel(script=script, usage=False)
    entries, messages = live(model, model_routing={"SLOW": strong})
    assert {entry.model_id for entry in entries if entry.model_id} == {"scripted-1", "strong"}
    assert saved(replayed(messages, tmp_path), UNSAVED_OF_ROUTED) == saved(entries, UNSAVED_OF_ROUTED)
