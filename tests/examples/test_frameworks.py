"""The example of the OpenAI Agents SDK, and what docs/openai-agents.md and README.md show of it, run as they stand."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import importlib.util
import io
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from reasonblocks.render import FRAME
from reasonblocks_testing import Turn, tool_call
from reasonblocks_testing.server import Asked, ScriptedServer

ROOT = Path(__file__).parents[2]
MISSING = [name for name in ("agents", "reasonblocks_openai_agents") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed here: {', '.join(MISSING)}")

CALLS = 6
"""How often the scripted model calls a tool before it answers: its first one again and again, then its last."""
ARGUMENTS = {"read_file": {"path": "a.py"}, "ask_reader": {"input": "What is in a.py?"}}
FINDING = "5 times (your last step, and 1, 2, 3 and 4 steps before it)"


def test_the_example_prints_what_the_agent_was_told() -> None:
    command = [sys.executable, str(ROOT / "examples/openai_agents_run.py")]
    shown = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"call 5: NORMAL\n  | run_tests() has failed in the same way {FINDING}" in shown.stdout
    assert shown.stdout.endswith("success: 7 calls\n")


# --- the pages


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a page's blocks have left: their names after each block, what they printed, what the provider was asked."""

    blocks: Sequence[str]
    names: Sequence[dict[str, Any]]
    printed: Sequence[str]
    requests: Sequence[Asked]

    def at(self, words: str) -> int:
        """The block that holds these words."""
        return next(at for at, block in enumerate(self.blocks) if words in block)


def blocks(page: str, about: str) -> list[str]:
    """A page's Python blocks that hold a certain word."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [block for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) if about in block]


def says(ids: Iterator[int], asked: Asked) -> Turn:
    if asked.answers == CALLS:
        return Turn(text="Done.")
    names = [tool["name"] for tool in asked.body["tools"]]
    name = names[0] if asked.answers < CALLS - 1 else names[-1]
    return Turn(text="I do that.", tool_calls=(tool_call(f"call-{next(ids)}", name, ARGUMENTS.get(name)),))


def shown(code: Sequence[str]) -> Shown:
    """Runs the blocks one after the other, as a reader would in one coroutine."""
    ids = itertools.count()
    names, printed = list[dict[str, Any]](), list[str]()
    with ScriptedServer(lambda asked: says(ids, asked)) as server, own_loop() as loop, provider(loop, server) as known:
        for block in code:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                run(compile(block, "a page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), known, loop)
            names.append(dict(known))
            printed.append(out.getvalue())
        return Shown(blocks=code, names=names, printed=printed, requests=server.requests)


def run(code: CodeType, names: dict[str, Any], loop: asyncio.AbstractEventLoop) -> None:
    if (waits := eval(code, names)) is not None:
        loop.run_until_complete(waits)


@contextlib.contextmanager
def own_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """For `await` and for `run_sync` alike: a client belongs to the loop of its first request."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        asyncio.set_event_loop(None)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@contextlib.contextmanager
def provider(loop: asyncio.AbstractEventLoop, server: ScriptedServer) -> Iterator[dict[str, Any]]:
    """What a page says is the reader's: tools, models, a key."""
    import agents
    from openai import AsyncOpenAI

    @agents.function_tool
    def read_file(path: str) -> str:
        return f"{path} is empty"

    @agents.function_tool
    def run_tests() -> str:
        return "3 failed"

    @agents.function_tool(needs_approval=True)
    def deploy() -> str:
        return "deployed"

    client = AsyncOpenAI(base_url=server.openai_url, api_key="not needed", max_retries=0)
    agents.set_default_openai_client(client, use_for_tracing=False)
    agents.set_tracing_disabled(True)
    own = agents.OpenAIResponsesModel(model="own-model", openai_client=client)
    names = {"read_file": read_file, "run_tests": run_tests, "deploy": deploy, "show": repr, "own_model": own}
    yield names
    loop.run_until_complete(client.close())


@pytest.fixture(scope="module")
def page() -> Shown:
    return shown(blocks("docs/openai-agents.md", ""))


def test_the_first_run_of_the_page_is_steered(page: Shown) -> None:
    run = page.names[0]["run"]
    assert (run.run_id, run.outcome, len(run.step_log)) == ("run-1", "success", CALLS + 1)
    assert FINDING in run.step_log[5].intervention_texts[0]


def test_the_page_s_step_log_ends_with_the_outcome(page: Shown) -> None:
    assert page.printed[page.at("for entry in run.step_log")].splitlines()[-1] == "success"


def test_a_run_that_raises_is_found_in_what_it_raised(page: Shown) -> None:
    assert page.printed[page.at("AgentsException")] == "failure: MaxTurnsExceeded\n"


def test_a_streamed_run_is_over_with_its_stream(page: Shown) -> None:
    assert page.printed[page.at("stream_events")] == "success\n"


def test_an_agent_as_a_tool_is_a_run_of_its_own(page: Shown) -> None:
    children = page.printed[page.at("as_tool")].splitlines()
    assert [line.split()[1:] for line in children] == [["success", str(CALLS + 1)]] * CALLS


def test_after_an_approval_the_run_goes_on_at_its_next_step(page: Shown) -> None:
    from reasonblocks_openai_agents import steering_of

    waiting, done = (steering_of(page.names[page.at(words)]["result"]) for words in ("to_json()", "approve("))
    assert (waiting.outcome, done.outcome, waiting.run_id == done.run_id) == (None, "success", True)
    assert [entry.step for entry in (*waiting.step_log, *done.step_log)] == [*range(CALLS + 1)]


def test_a_model_object_that_is_wrapped_is_asked(page: Shown) -> None:
    assert [request.model for request in page.requests].count("own-model") == CALLS + 1


def test_a_run_can_be_observed_and_stopped(page: Shown) -> None:
    observed, stopped = page.printed[page.at("RunStopped")].splitlines()
    assert FINDING in observed
    assert stopped == "stopped: 3 calls are enough"


def test_the_sdk_s_own_runner_is_steered_through_the_model(page: Shown) -> None:
    assert page.printed[page.at('rb.openai_model("your-model"')] == f"success {CALLS + 1}\n"
    assert any(request.model == "your-model" and FINDING in request.texts[-1] for request in page.requests)


def test_hooks_alone_record_and_say_nothing(page: Shown) -> None:
    assert page.printed[page.at("openai_hooks")] == "[None, 'quiet', 'quiet', 'quiet', 'quiet', 'inject', 'quiet']\n"
    assert not any(FRAME in str(request.body) for request in page.requests[-CALLS - 1 :])


def test_the_readme_s_run_is_steered() -> None:
    readme = shown(blocks("README.md", "from agents import"))
    assert readme.printed[0].splitlines()[0] == "0 INIT None"
    assert FINDING in readme.requests[5].texts[-1]
