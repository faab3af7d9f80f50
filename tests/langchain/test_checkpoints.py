"""A checkpointer keeps what steering knows of a run: nothing that a caller's code gives may break its serializer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from reasonblocks import ReasonBlocks
from reasonblocks.exceptions import ConfigError
from reasonblocks.session import snapshot
from reasonblocks.types import JSON, RunInfo, Step
from reasonblocks_langchain import middleware
from tests.langchain.scripted import ScriptedModel, by_position
from tests.langchain.world import QUESTION, agent, looks, scripted, thread

TURNS = 3
PAST_64_BITS = 2**64


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


class Hoarder:
    """A caller's monitor that remembers what it is given, and nothing else."""

    name = "hoarder"
    failure_type = "hoarding"

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    def observe(self, step: Step, memory: JSON, run: RunInfo) -> tuple[float, Any, tuple[int, ...]]:
        return 0.1, self.memory, ()


@contextmanager
def saver(kind: str, folder: Path) -> Iterator[Any]:
    if kind == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver.from_conn_string(str(folder / "threads.db")) as sqlite:
            yield sqlite


SAVERS = pytest.mark.parametrize("kind", ["memory", "sqlite"])


@SAVERS
@pytest.mark.parametrize(
    "memory",
    [
        {"count": PAST_64_BITS},
        {"count": -PAST_64_BITS},
        nested(350),
        {"ratio": float("nan")},
        {"text": "half \ud83d of a pair"},
        {1: "one"},
        b"bytes",
        {"set"},
    ],
    ids=["past 64 bits", "past -64 bits", "350 levels", "nan", "surrogate", "int key", "bytes", "set"],
)
def test_a_memory_that_no_checkpointer_takes_never_ends_the_agents_run(kind: str, tmp_path: Path, memory: Any) -> None:
    mw = middleware(ReasonBlocks(monitors=[Hoarder(memory)], strict=False))
    with saver(kind, tmp_path) as checkpointer:
        steered = agent(scripted(TURNS), mw, checkpointer=checkpointer)
        result = steered.invoke(QUESTION, thread())
    assert result["messages"][-1].content == "All seen."
    assert mw.trace.state.memories.get("hoarder") is None
    assert sum(next(iter(mw._runs.all())).session.faults.values()) == TURNS + 1


@SAVERS
def test_a_memory_that_is_json_comes_back_from_the_checkpoint_as_it_was(kind: str, tmp_path: Path) -> None:
    memory = {"least": -(2**63), "most": 2**63 - 1, "ratio": 0.1, "text": "żółć 🙂", "none": None, "deep": nested(30)}
    mw = middleware(ReasonBlocks(monitors=[Hoarder(memory)]))
    with saver(kind, tmp_path) as checkpointer:
        steered = agent(scripted(TURNS), mw, checkpointer=checkpointer)
        steered.invoke(QUESTION, thread())
        ((_, carried),) = steered.checkpointer.get_tuple(thread()).checkpoint["channel_values"]["reasonblocks"].items()
    assert carried["snapshot"]["memories"]["hoarder"] == memory


def test_a_token_budget_that_no_checkpointer_takes_is_refused_where_it_is_given() -> None:
    with pytest.raises(ConfigError, match="token_budget"):
        ReasonBlocks(token_budget=2**70)


def test_the_largest_token_budget_is_kept_in_a_checkpoint() -> None:
    mw = middleware(ReasonBlocks(token_budget=2**63 - 1))
    steered = agent(scripted(TURNS), mw, checkpointer=InMemorySaver())
    steered.invoke(QUESTION, thread())
    assert mw.trace.state.token_budget == 2**63 - 1


@pytest.mark.parametrize("reported", [2**70, 2**63 - 1])
def test_tokens_that_no_model_can_have_used_never_end_the_agents_run(reported: int) -> None:
    """LangChain's own message holds the count, too: it is told to ours alone here."""
    usage = {"prompt_tokens": reported, "completion_tokens": reported}
    answers = [turn for turn in looks(TURNS) if isinstance(turn, AIMessage)]
    mw = middleware(ReasonBlocks())
    model = ScriptedModel(script=by_position(*answers, "All seen."), usage=False)
    steered = agent(model, mw, reporting(usage))
    result = steered.invoke(QUESTION)
    assert result["messages"][-1].content == "All seen."
    state = mw.trace.state
    assert 0 <= state.total_tokens <= 2**63 - 1
    JsonPlusSerializer().dumps_typed(mw.trace.snapshot())


def reporting(usage: dict[str, int]) -> Any:
    from langchain.agents.middleware import AgentMiddleware

    class Reporting(AgentMiddleware[Any, Any, Any]):
        """The innermost middleware: the answer says how many tokens it took."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            response = handler(request)
            for message in response.result:
                message.response_metadata["token_usage"] = usage
            return response

    return Reporting()


def test_the_first_step_of_a_run_does_not_build_what_snapshots_need() -> None:
    snapshot._STATE._tools.cache_clear()
    middleware(rb=ReasonBlocks())
    assert snapshot._STATE._tools.cache_info().currsize == 1
