"""Token saving on real agents: what the model reads, what the state keeps, and what steering still sees."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware, SummarizationMiddleware
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.tool import invalid_tool_call
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from reasonblocks import ReasonBlocks, Step
from reasonblocks.exceptions import ConfigError
from reasonblocks.types import JSON, RunInfo
from reasonblocks_langchain import SavingPlan, TokenSaving, TokenSavingMiddleware
from reasonblocks_langchain._request import with_tail
from reasonblocks_langchain.saving._request_parts import FILE_BYTES, IMAGE_BYTES, request_parts
from reasonblocks_langchain.saving.middleware import CHANNEL
from tests.langchain.scripted import Script, ScriptedModel, by_position, calls, in_order
from tests.langchain.world import QUESTION, agent, look, thread

LINE = "line of a long file that the agent has read\n"
PAGE = LINE * 800
LOOKS = 5
MODES = ("invoke", "ainvoke", "stream", "astream")


def page(path: str) -> str:
    """Returns a long page."""
    return f"{path}\n{PAGE}"


def blocks(path: str) -> list[Any]:
    """Returns a long page as blocks."""
    return [{"type": "text", "text": f"{path}\n{PAGE}"}, {"type": "image_url", "image_url": {"url": "data:,"}}]


def fail(path: str) -> ToolMessage:
    """Returns a long error."""
    return ToolMessage(f"{path}\n{PAGE}", tool_call_id=path, status="error")


TOOLS = [page, blocks, fail]


def reads(tool: str = "page", count: int = LOOKS) -> list[Any]:
    turns: list[Any] = [calls(tool, f"I read {at}.", id=f"c{at}", path=f"c{at}") for at in range(count)]
    return [*turns, "All read."]


def free(**options: Any) -> TokenSavingMiddleware:
    """Saving for a provider without a prompt cache: it shortens as soon as it may."""
    return TokenSavingMiddleware(strict=True, read_price=1, write_price=1, **options)


def model(script: Script) -> ScriptedModel:
    return ScriptedModel(script=script)


def run(made: Any, mode: str = "invoke", config: Any = None) -> None:
    async def awaited() -> None:
        if mode == "ainvoke":
            await made.ainvoke(QUESTION, config)
        else:
            async for _ in made.astream(QUESTION, config, stream_mode=["values", "messages"]):
                pass

    if mode.startswith("a"):
        asyncio.run(awaited())
    elif mode == "invoke":
        made.invoke(QUESTION, config)
    else:
        list(made.stream(QUESTION, config, stream_mode=["values", "messages"]))


def results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


def short(messages: Sequence[BaseMessage]) -> list[bool]:
    """Return, for each result of a request, whether it is shortened."""
    return ["characters left out ...]" in message.text for message in results(messages)]


@pytest.mark.parametrize("mode", MODES)
def test_old_results_are_shortened_in_the_request_and_whole_in_the_state(mode: str) -> None:
    scripted, config = model(by_position(*reads())), thread()
    made = agent(scripted, free(), tools=TOOLS, checkpointer=InMemorySaver())
    run(made, mode, config)
    assert [short(seen.messages) for seen in scripted.seen][2:] == [
        [False, False],
        [True, False, False],
        [True, True, False, False],
        [True, True, True, False, False],
    ]
    first = results(scripted.seen[-1].messages)[0].text
    whole = page("c0")
    assert first == f"{whole[:900]}\n[... {len(whole) - 1_600:,} characters left out ...]\n{whole[-700:]}"
    kept = results(made.get_state(config).values["messages"])
    assert [message.text for message in kept] == [page(f"c{at}") for at in range(LOOKS)]


def test_while_it_is_disabled_nothing_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    scripted = model(by_position(*reads()))
    run(agent(scripted, free(), tools=TOOLS))
    assert not any(any(short(seen.messages)) for seen in scripted.seen)


@pytest.mark.parametrize("mode", MODES)
def test_the_result_of_a_run_has_no_ledger(mode: str) -> None:
    made = agent(model(by_position(*reads())), free(), tools=TOOLS)
    assert CHANNEL not in made.invoke(QUESTION)
    run(made, mode)


def test_of_a_list_of_blocks_the_texts_are_shortened_and_the_rest_is_left() -> None:
    scripted = model(by_position(*reads("blocks")))
    agent(scripted, free(), tools=TOOLS).invoke(QUESTION)
    content: Any = results(scripted.seen[-1].messages)[0].content
    assert "characters left out ...]" in content[0]["text"]
    assert content[1:] == blocks("c0")[1:]


def test_errors_are_never_shortened() -> None:
    scripted = model(by_position(*reads("fail")))
    agent(scripted, free(), tools=TOOLS).invoke(QUESTION)
    assert short(scripted.seen[-1].messages) == [False] * LOOKS


def reported(turn: Any, *, read: int, written: int) -> Any:
    """The turn, with what Anthropic reports of its cache."""
    said = AIMessage(turn) if isinstance(turn, str) else turn
    details: Any = {"cache_read": read, "cache_creation": written}
    usage = {"input_tokens": 20_000, "output_tokens": 9, "total_tokens": 20_009, "input_token_details": details}
    return said.model_copy(update={"usage_metadata": usage})


@pytest.mark.parametrize("mode", MODES)
def test_answers_that_report_no_cache_let_it_shorten(mode: str) -> None:
    scripted = model(by_position(*(reported(turn, read=0, written=0) for turn in reads())))
    run(agent(scripted, TokenSavingMiddleware(strict=True), tools=TOOLS), mode)
    assert short(scripted.seen[-1].messages)[0]


def volume(path: str) -> str:
    """Returns as much text as a model can read."""
    return PAGE * 20


def test_a_huge_result_before_short_ones_is_shortened_although_the_cache_is_warm() -> None:
    first = calls("volume", "I read it.", id="v", path="v")
    turns = [first, *(calls("look", f"I look at {at}.", id=f"l{at}", path="f") for at in range(3)), "All seen."]
    scripted = model(by_position(*(reported(turn, read=19_900, written=100) for turn in turns)))
    question = {"messages": [("user", PAGE)]}
    agent(scripted, TokenSavingMiddleware(strict=True), tools=[volume, look]).invoke(question)
    assert [short(seen.messages)[:1] for seen in scripted.seen] == [[], [False], [False], [True], [True]]


def test_a_last_message_with_guidance_has_no_key() -> None:
    asked, result = HumanMessage("Go.", id="h"), ToolMessage("Gone.", tool_call_id="c", id="t")
    state: list[AnyMessage] = [asked, result]
    assert [part.key for part in request_parts(state, state)] == ["h", "t"]
    assert [part.key for part in request_parts(with_tail(state, "Look up."), state)] == ["h", None]
    assert [part.key for part in request_parts(with_tail(state[:1], "Look up."), state[:1])] == [None]
    assert request_parts([], []) == []


CHINESE = {"text": "文件内容已经修改" * 100}
CALL = ToolCall(name="write", args=CHINESE, id="c", type="tool_call")
INVALID = invalid_tool_call(name="write", args="x" * 9_000, id="i", error="e")


def other_bytes(message: AnyMessage) -> int:
    return request_parts([message], [message])[0].other_bytes


@pytest.mark.parametrize(
    ("message", "least"),
    [
        (AIMessage("", tool_calls=[CALL]), len(json.dumps(CHINESE))),
        (AIMessage("", invalid_tool_calls=[INVALID]), 9_000),
        (AIMessage("", additional_kwargs={"reasoning_content": "why " * 900}), 3_600),
        (HumanMessage([{"type": "thinking", "thinking": "文" * 900}]), 5_400),
        (HumanMessage([{"type": "text", "text": "t", "citations": ["文" * 900]}]), 5_400),
        (HumanMessage([{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}]), IMAGE_BYTES),
        (HumanMessage([{"type": "image", "base64": "A" * 100_000}]), 100_000),
        (ToolMessage([{"type": "unknown"}], tool_call_id="c"), IMAGE_BYTES),
        (HumanMessage([{"type": "file", "file_id": "f"}]), FILE_BYTES),
        (AIMessage([{"type": "tool_use", "id": "c", "name": "write", "input": {}}], tool_calls=[CALL]), 4_800),
    ],
)
def test_the_size_of_a_message_is_at_least_what_a_client_sends(message: AnyMessage, least: int) -> None:
    assert other_bytes(message) >= least


def test_a_call_that_is_also_a_block_or_an_additional_field_counts_once() -> None:
    beside = AIMessage("", tool_calls=[CALL])
    inside = AIMessage([{"type": "tool_use", "id": "c", "name": "write", "input": CHINESE}], tool_calls=[CALL])
    twice = AIMessage("", tool_calls=[CALL], additional_kwargs={"tool_calls": [{"id": "c", "function": CHINESE}]})
    assert other_bytes(inside) <= other_bytes(beside) + 100
    assert other_bytes(twice) == other_bytes(beside)


def test_a_request_that_is_made_again_is_the_same() -> None:
    first, *rest = reads()
    turns = [first, *rest[:3], ConnectionError("again"), *rest[3:]]
    scripted = model(in_order(*turns))
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    agent(scripted, retry, free(), tools=TOOLS).invoke(QUESTION)
    failed, again = scripted.seen[4:6]
    assert short(failed.messages) == [True, True, False, False]
    assert failed == again


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_another_process_goes_on_from_the_checkpoint(kind: str, tmp_path: Any) -> None:
    config = thread()

    def line(saver: Any) -> None:
        seen: list[Any] = []
        state: Any = None
        for given in (QUESTION, *[None] * LOOKS):
            scripted = model(by_position(*reads()))
            made = agent(scripted, free(keep=1), tools=TOOLS, checkpointer=saver, interrupt_before=["tools"])
            made.invoke(given, config)
            state = made.get_state(config)
            seen += scripted.seen
        assert state.next == ()
        assert [sum(short(request.messages)) for request in seen] == [0, 0, 1, 2, 3, 4]
        assert len(state.values[CHANNEL]["cut"]) == LOOKS - 1

    if kind == "memory":
        line(InMemorySaver())
    else:
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as sqlite:
            line(sqlite)


def test_a_summary_that_removes_results_is_no_fault() -> None:
    scripted = model(in_order(*reads(count=12)))
    summary: Any = SummarizationMiddleware(
        model(in_order("Much was read.")),
        trigger=("messages", 12),
        keep=("messages", 6),
        trim_tokens_to_summarize=None,
    )
    agent(scripted, summary, free(), tools=TOOLS).invoke(QUESTION)
    assert any("Much was read." in seen.text for seen in scripted.seen)
    assert short(scripted.seen[-1].messages)[:1] == [True]
    assert short(scripted.seen[-1].messages)[-2:] == [False, False]


def test_one_object_serves_several_agents() -> None:
    saving = free()
    for tool in ("page", "blocks"):
        scripted = model(by_position(*reads(tool)))
        agent(scripted, saving, tools=TOOLS).invoke(QUESTION)
        assert short(scripted.seen[-1].messages) == [True, True, True, False, False]


class Reader:
    """A monitor that remembers what it reads."""

    name = "reader"
    failure_type = "reading"

    def __init__(self) -> None:
        self.read: list[str] = []

    def observe(self, step: Step, memory: JSON, run: RunInfo) -> tuple[float, JSON, tuple[int, ...]]:
        self.read.append(step.observation)
        return 0.0, None, ()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("last", [True, False])
def test_steering_beside_it_reads_whole_results(last: bool, mode: str) -> None:
    reader = Reader()
    rb = ReasonBlocks(strict=True, monitors=[reader])
    scripted = model(by_position(*reads()))
    with rb.middleware() as mw:
        run(agent(scripted, *([mw, free()] if last else [free(), mw]), tools=TOOLS), mode)
    assert short(scripted.seen[-1].messages) == [True, True, True, False, False]
    assert reader.read[:LOOKS] == [page(f"c{at}") for at in range(LOOKS)]
    assert [len(run.step_log) for run in mw.runs.values()] == [LOOKS + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken(TokenSaving):
    """Fails to plan."""

    def plan(self, *_: Any, **__: Any) -> SavingPlan:
        raise KeyError("plan")


def test_a_fault_sends_the_request_whole_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    scripted = model(by_position(*reads()))
    saving = TokenSavingMiddleware(Broken(read_price=1, write_price=1))
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        agent(scripted, saving, tools=TOOLS).invoke(QUESTION)
    assert not any(any(short(seen.messages)) for seen in scripted.seen)
    assert len(scripted.seen) == LOOKS + 1
    assert [record.name for record in caplog.records] == ["reasonblocks"]


class Damaging(AgentMiddleware[Any, Any, Any]):
    """Writes a ledger that is none of ours, once."""

    def __init__(self, ledger: Any) -> None:
        self.ledger = ledger

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {CHANNEL: self.ledger}


@pytest.mark.parametrize("ledger", [{"cut": 7}, {"version": 99}, "ledger", [1]])
@pytest.mark.parametrize("mode", MODES)
def test_an_unreadable_ledger_is_replaced_after_one_warning(
    ledger: Any, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    scripted, config = model(by_position(*reads())), thread()
    saving = TokenSavingMiddleware(read_price=1, write_price=1)
    made = agent(scripted, saving, Damaging(ledger), tools=TOOLS, checkpointer=InMemorySaver())
    with caplog.at_level(logging.WARNING, "reasonblocks"):
        run(made, mode, config)
    assert short(scripted.seen[-1].messages) == [True, True, True, False, False]
    assert len([record for record in caplog.records if "ledger" in record.message]) == 1
    assert made.get_state(config).values[CHANNEL]["lost"] is True


def test_with_strict_a_fault_is_raised() -> None:
    with pytest.raises(ConfigError, match="ledger"):
        agent(model(by_position(*reads())), free(), Damaging({"cut": 7}), tools=TOOLS).invoke(QUESTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched(TokenSaving):
    """Remembers the threads that plan."""

    threads: list[int]

    def plan(self, *given: Any, **more: Any) -> SavingPlan:
        self.threads.append(threading.get_ident())
        return super(Watched, self).plan(*given, **more)


@pytest.mark.parametrize("mode", ["ainvoke", "astream"])
def test_long_requests_are_planned_in_a_thread_and_short_ones_in_the_loop(mode: str) -> None:
    saving = Watched(read_price=1, write_price=1, threads=[])
    scripted = model(by_position(*reads()))
    run(agent(scripted, TokenSavingMiddleware(saving, strict=True), tools=TOOLS), mode)
    here = threading.get_ident()
    assert [ident == here for ident in saving.threads] == [True, True, True, False, False, False]
    assert short(scripted.seen[-1].messages) == [True, True, True, False, False]


def test_the_options_are_those_of_token_saving() -> None:
    assert TokenSavingMiddleware().saving == TokenSaving()
    assert TokenSavingMiddleware(TokenSaving(keep=4)).saving == TokenSavingMiddleware(keep=4).saving
    with pytest.raises(ConfigError, match="keep"):
        TokenSavingMiddleware(keep=0)
    with pytest.raises(ConfigError, match="did you mean 'keep'"):
        TokenSavingMiddleware(keeep=1)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="must be a TokenSaving"):
        TokenSavingMiddleware("x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="keep"):
        TokenSavingMiddleware(TokenSaving(), keep=4)
