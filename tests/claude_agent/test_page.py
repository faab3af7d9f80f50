"""What docs/claude-agent.md and README.md show, run as it stands, in sessions of the real CLI."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import itertools
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import SdkMcpTool, UserMessage, create_sdk_mcp_server

from reasonblocks.render import FRAME
from reasonblocks_testing import Turn, tool_call
from reasonblocks_testing.server import Asked, ScriptedServer

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="docs are no part of the wheels")

CALLS = 6
"""How often the scripted model runs the tests before it answers."""
FINDING = "5 times (your last step, and 1, 2, 3 and 4 steps before it)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a page's blocks have left: after each its names, what it printed, and what it asked the provider."""

    blocks: Sequence[str]
    names: Sequence[Mapping[str, Any]]
    printed: Sequence[str]
    requests: Sequence[Sequence[Asked]]

    def at(self, words: str) -> int:
        """The block that holds these words."""
        return next(at for at, block in enumerate(self.blocks) if words in block)


def blocks(page: str, about: str) -> list[str]:
    """A page's Python blocks that hold a certain word."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [block for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) if about in block]


def says(ids: Iterator[int], asked: Asked) -> Turn:
    """Each prompt of a session is worked on alike: what stands before it does not count."""
    if not asked.body.get("tools") or asked.answers % (CALLS + 1) == CALLS:
        return Turn(text="Done.")
    return Turn(text="I run them.", tool_calls=(tool_call(f"call-{next(ids)}", "mcp__repository__run_tests"),))


def repository() -> Any:
    async def run_tests(arguments: Any) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "3 failed"}]}

    nothing: dict[str, Any] = {"type": "object", "properties": {}}
    tool = SdkMcpTool(name="run_tests", description="Runs the tests.", input_schema=nothing, handler=run_tests)
    return create_sdk_mcp_server("repository", tools=[tool])


def shown(code: Sequence[str], where: Path) -> Shown:
    """Runs the blocks one after the other, as a reader would in one coroutine."""
    ids = itertools.count()
    known: dict[str, Any] = {
        "repository": repository(),
        "show": repr,
        "session_id": str(uuid.uuid4()),
        "enough": lambda message: isinstance(message, UserMessage),
    }
    names, printed, requests = list[dict[str, Any]](), list[str](), list[list[Asked]]()
    with ScriptedServer(lambda asked: says(ids, asked)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANTHROPIC_BASE_URL", server.anthropic_url)
        patch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        patch.chdir(where)
        loop = asyncio.new_event_loop()
        for block in code:
            before = len(server.requests)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                program = eval(compile(block, "a page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), known)
                if program is not None:
                    loop.run_until_complete(program)
            names.append(dict(known))
            printed.append(out.getvalue())
            requests.append(server.requests[before:])
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
    return Shown(blocks=code, names=names, printed=printed, requests=requests)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return shown(blocks("docs/claude-agent.md", ""), tmp_path_factory.mktemp("reader"))


def test_the_first_session_of_the_page_is_steered(page: Shown) -> None:
    run = page.names[0]["client"].steering.runs["run-1"]
    assert (run.outcome, len(run.step_log)) == ("success", CALLS + 1)
    assert FINDING in run.step_log[5].intervention_texts[0]


def test_the_page_s_step_log_ends_with_the_outcome(page: Shown) -> None:
    assert page.printed[page.at("for entry in run.step_log")].splitlines()[-1] == "success"


def test_the_page_s_query_is_steered(page: Shown) -> None:
    assert any(FINDING in text for asked in page.requests[page.at("import query")] for text in asked.texts)


def test_a_client_of_one_s_own_is_steered_by_hooks(page: Shown) -> None:
    at = page.at("rb.claude_hooks")
    assert page.printed[at] == f"success {CALLS + 1}\n"
    assert any(FINDING in text for asked in page.requests[at] for text in asked.texts)


def test_through_the_gateway_nothing_of_the_guidance_stays(page: Shown) -> None:
    requests = page.requests[page.at('mode="gateway"')]
    assert [FINDING in "".join(asked.texts) for asked in requests] == [*[False] * 5, True, False]
    assert [FRAME in "".join((asked.system, *asked.texts)) for asked in requests] == [True, *[False] * 4, True, False]


def test_a_session_that_was_left_goes_on_with_its_run(page: Shown) -> None:
    (left,) = page.names[page.at("if enough(message)")]["client"].steering.runs.values()
    ((name, outcome, last),) = ast.literal_eval(page.printed[page.at("resume=session_id")])
    assert (left.outcome, name, outcome) == (None, "run-4", "success")
    assert last > left.step_log[-1].step  # how far the CLI came before it was left is its own affair


def test_the_page_s_observed_session_is_told_nothing(page: Shown) -> None:
    at = page.at('mode="observe"')
    assert FINDING in page.printed[at].splitlines()[5]
    assert not any(FRAME in "".join((asked.system, *asked.texts)) for asked in page.requests[at])


def test_the_page_s_stopped_run_has_its_reason(page: Shown) -> None:
    at = page.at("stop_when=limit")
    assert (page.printed[at], len(page.requests[at])) == ("stopped: three calls are enough\n", 3)


def test_the_page_s_routed_session_runs(page: Shown) -> None:
    assert page.names[-1]["client"].steering.step_log[-1].step == CALLS


def test_the_readme_s_session_is_steered(tmp_path: Path) -> None:
    readme = shown(blocks("README.md", "SteeredClaudeClient"), tmp_path)
    assert "ResultMessage\n0 INIT None\n" in readme.printed[0]
    assert any(FINDING in text for asked in readme.requests[0] for text in asked.texts)
