"""Writes the recorded conversations that the readers of `traces` are tested with: real runs with a scripted provider.

`python tools/trace_fixtures.py [NAME ...]` needs an environment with all frameworks, such as `.nox/all`. No request
leaves this machine: the frameworks inherit no settings, and the provider is on loopback.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "tests/workbench/traces/fixtures"
sys.path.insert(0, str(ROOT))

from reasonblocks.types import Usage  # noqa: E402
from reasonblocks_testing import Turn, tool_call  # noqa: E402
from reasonblocks_testing.server import Asked, ProviderError, ScriptedServer  # noqa: E402

Json: TypeAlias = "dict[str, Any]"
TASKS = ("Fix the failing tests.", "And now the linter.")
MODEL = "scripted-model"
TURNS = (
    Turn(
        reasoning="Both files may matter.",
        text="I look at both files.",
        tool_calls=(tool_call("c1", "look", {"path": "a.py"}), tool_call("c2", "look", {"path": "b.py"})),
        usage=Usage(input=100, output=10, cache_read=40, cache_write=20),
    ),
    Turn(
        text="b.py is missing. I look at c.py.",
        tool_calls=(tool_call("c3", "look", {"path": "c.py"}),),
        usage=Usage(input=200, output=20),
    ),
    Turn(text="The tests pass.", usage=Usage(input=300, output=30)),
    Turn(text="The linter passes.", usage=Usage(input=400, output=40)),
)
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def look(path: str) -> str:
    """Looks at a file."""
    if path == "b.py":
        raise FileNotFoundError(path)
    return f"{path} is empty"


def looked(arguments: str | Json) -> str:
    """Return the tool's output as a loop sends it, its error as text."""
    try:
        return look(**(json.loads(arguments) if isinstance(arguments, str) else arguments))
    except FileNotFoundError as error:
        return f"FileNotFoundError: {error}"


def in_turn(asked: Asked) -> Turn:
    return TURNS[asked.answers]


# --- the providers' own clients


def openai_chat() -> Iterator[Json]:
    """A loop on the `openai` client's chat completions, which keeps the answers as they are, one message a line."""
    from openai import OpenAI

    tools: Any = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
    messages: list[Any] = []
    with ScriptedServer(in_turn) as server, OpenAI(base_url=server.openai_url, api_key="none") as client:
        for task in TASKS:
            messages.append({"role": "user", "content": task})
            yield messages[-1]
            while True:
                answer = client.chat.completions.create(model=MODEL, messages=messages, tools=tools)
                yield answer.model_dump(mode="json", exclude_none=True)
                said: Any = answer.choices[0].message
                messages.append(said.model_dump(exclude_none=True))
                for call in said.tool_calls or ():
                    output = looked(call.function.arguments)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": output})
                    yield messages[-1]
                if not said.tool_calls:
                    break


def openai_responses() -> list[Json]:
    """A loop on the `openai` client's Responses API, which keeps the answers as they are."""
    from openai import OpenAI

    tools: Any = [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}]
    kept, items = list[Json](), list[Any]()
    with ScriptedServer(in_turn) as server, OpenAI(base_url=server.openai_url, api_key="none") as client:
        for task in TASKS:
            new: list[Json] = [{"role": "user", "content": task}]
            while new:
                kept, items = [*kept, *new], [*items, *new]
                answer = client.responses.create(model=MODEL, input=items, tools=tools)
                kept.append(answer.model_dump(mode="json", exclude_none=True, exclude={"tools"}))
                items += answer.output
                new = [
                    {"type": "function_call_output", "call_id": item.call_id, "output": looked(item.arguments)}
                    for item in answer.output
                    if item.type == "function_call"
                ]
    return kept


def anthropic_messages() -> list[Json]:
    """A loop on the `anthropic` client, whose history has the answers as the API returns them."""
    from anthropic import Anthropic

    tools: Any = [{"name": "look", "input_schema": SCHEMA}]
    kept, messages = list[Json](), list[Any]()
    with ScriptedServer(in_turn) as server, Anthropic(base_url=server.anthropic_url, api_key="none") as client:
        for task in TASKS:
            new: list[Any] = [task]
            while new:
                messages.append({"role": "user", "content": new[0] if new == [task] else new})
                kept.append(messages[-1])
                answer = client.messages.create(model=MODEL, max_tokens=999, messages=messages, tools=tools)
                kept.append(answer.model_dump(mode="json", exclude_none=True))
                messages.append({"role": "assistant", "content": answer.content})
                new = [_anthropic_result(block) for block in answer.content if block.type == "tool_use"]
    return kept


def _anthropic_result(block: Any) -> Json:
    output = looked(block.input)
    failed = {"is_error": True} if output.startswith("FileNotFoundError") else {}
    return {"type": "tool_result", "tool_use_id": block.id, "content": output, **failed}


# --- frameworks


def langchain_chat() -> list[Json]:
    """Return an agent's messages as `convert_to_openai_messages` converts them."""
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic
    from langchain_core.messages import convert_to_openai_messages

    found: list[Any] = []
    with ScriptedServer(in_turn) as server:
        model: Any = ChatAnthropic(model=MODEL, base_url=server.anthropic_url, api_key="none")  # type: ignore[arg-type, call-arg]
        agent: Any = create_agent(model, tools=[_langchain_tool()])
        for task in TASKS:
            found = agent.invoke({"messages": [*found, ("user", task)]})["messages"]
    return list(convert_to_openai_messages(found))


def _langchain_tool() -> Any:
    from langchain_core.tools import tool

    made: Any = tool("look")(looked_at)
    return made


def looked_at(path: str) -> str:
    """Looks at a file."""
    return looked({"path": path})


def openai_agents() -> list[Json]:
    """Return the `to_input_list()` of two runs of an agent of the OpenAI Agents SDK."""
    from agents import Agent, OpenAIResponsesModel, function_tool
    from openai import AsyncOpenAI

    async def run(server: ScriptedServer) -> list[Any]:
        async with AsyncOpenAI(base_url=server.openai_url, api_key="none") as client:
            agent = Agent(name="fixer", tools=[function_tool(look)], model=OpenAIResponsesModel(MODEL, client))
            return await _items_of(agent)

    with ScriptedServer(in_turn) as server:
        return asyncio.run(run(server))


async def _items_of(agent: Any) -> list[Any]:
    """Return the items of one conversation about all tasks."""
    from agents import RunConfig, Runner

    items = list[Any]()
    for task in TASKS:
        given = [*items, {"role": "user", "content": task}]
        result = await Runner.run(agent, given, run_config=RunConfig(tracing_disabled=True))
        items = result.to_input_list()
    return items


MCP_SERVER = """
from mcp.server.fastmcp import FastMCP

server = FastMCP("files")


@server.tool(structured_output=False)
def look(path: str) -> list[str]:
    if path == "b.py":
        raise FileNotFoundError(path)
    return [f"{path} is empty"] if path == "a.py" else [f"{path} is empty", ""]


server.run()
"""


def openai_agents_mcp() -> list[Json]:
    """The same with a server of the Model Context Protocol; `openai-agents` 0.6.4 and `mcp` 1.30 write its JSON."""
    from agents import Agent, OpenAIResponsesModel
    from agents.mcp import MCPServerStdio
    from openai import AsyncOpenAI

    async def run(server: ScriptedServer) -> list[Any]:
        script = Path(os.environ["HOME"], "server.py")
        script.write_text(MCP_SERVER)
        async with (
            AsyncOpenAI(base_url=server.openai_url, api_key="none") as client,
            MCPServerStdio({"command": sys.executable, "args": [str(script)]}) as files,
        ):
            agent = Agent(name="fixer", mcp_servers=[files], model=OpenAIResponsesModel(MODEL, client))
            return await _items_of(agent)

    with ScriptedServer(in_turn) as server:
        return asyncio.run(run(server))


# --- Claude Code

LOOK = "mcp__files__look"
SUBTASK = "Read a.py."
CLI_TURNS = (
    Turn(
        reasoning=TURNS[0].reasoning,
        text=TURNS[0].text,
        tool_calls=(tool_call("c1", LOOK, {"path": "a.py"}), tool_call("c2", LOOK, {"path": "b.py"})),
        usage=TURNS[0].usage,
    ),
    Turn(
        text="Somebody else is to read a.py.",
        tool_calls=(
            tool_call(
                "c3",
                "Task",
                {"description": "read", "prompt": SUBTASK, "subagent_type": "reader", "run_in_background": False},
            ),
        ),
        usage=TURNS[1].usage,
    ),
    TURNS[2],
    Turn(text="I run the linter.", tool_calls=(tool_call("c4", "Bash", {"command": "true"}),), usage=TURNS[3].usage),
    TURNS[3],
)
SUBAGENT_TURNS = (
    Turn(text="I read it.", tool_calls=(tool_call("s1", LOOK, {"path": "a.py"}),), usage=Usage(input=50, output=5)),
    Turn(text="a.py is empty.", usage=Usage(input=60, output=6)),
)


def claude_session(answer: Callable[[Asked], Turn], prompts: Sequence[str], **more: Any) -> dict[str, list[Json]]:
    """Return the transcripts of a session of the real CLI, by the name of the file: `session`, or the agent's."""
    import claude_agent_sdk as sdk

    async def run(server: ScriptedServer) -> None:
        async with sdk.ClaudeSDKClient(_claude_options(server, **more)) as client:
            for prompt in prompts:
                await client.query(prompt)
                async for _ in client.receive_response():
                    pass

    with ScriptedServer(answer) as server:
        asyncio.run(run(server))
    projects = Path(os.environ["HOME"], ".claude", "projects")
    files = sorted(projects.rglob("*.jsonl"), key=lambda path: len(path.parts))
    return {
        ("session" if "subagents" not in path.parts else path.stem): [
            json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()
        ]
        for path in files
    }


def _claude_options(server: ScriptedServer, **more: Any) -> Any:
    import claude_agent_sdk as sdk

    async def give(arguments: Any) -> Json:
        output = looked(arguments)
        return {"content": [{"type": "text", "text": output}], "is_error": output.startswith("FileNotFoundError")}

    tool = sdk.SdkMcpTool(name="look", description="Looks at a file.", input_schema=SCHEMA, handler=give)
    environment = {
        "ANTHROPIC_BASE_URL": server.anthropic_url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "ENABLE_TOOL_SEARCH": "false",
    }
    return sdk.ClaudeAgentOptions(
        model=MODEL,
        system_prompt="You fix bugs.",
        tools=["Task", "Bash"],
        allowed_tools=["Task", "Bash", LOOK],
        agents={"reader": sdk.AgentDefinition(description="reads", prompt="You read.", tools=[LOOK])},
        mcp_servers={"files": sdk.create_sdk_mcp_server("files", tools=[tool])},
        setting_sources=[],
        cwd=os.environ["HOME"],
        env=environment,
        **more,
    )


def claude_code() -> list[Json]:
    """A session with two prompts, a failed tool and a subagent, and then the subagent's own transcript."""

    def answer(asked: Asked) -> Turn:
        return SUBAGENT_TURNS[asked.answers] if SUBTASK in asked.opening else CLI_TURNS[asked.answers]

    found = claude_session(answer, TASKS)
    return list(reduced(line for lines in found.values() for line in lines))


def claude_code_ends() -> list[Json]:
    """A session that is compacted, and whose last request fails."""

    def answer(asked: Asked) -> Turn:
        if "Break." in asked.texts[-1]:
            raise ProviderError("the model is gone", status=400)
        return Turn(text="Done.", usage=Usage(input=10, output=1))

    return list(reduced(claude_session(answer, (TASKS[0], "/compact", TASKS[1], "Break."))["session"]))


def claude_code_compacted() -> list[Json]:
    """A session that is compacted twice, and once more by itself, in the middle of a run whose context is full."""
    full = Usage(input=3_000_000, output=1)

    def answer(asked: Asked) -> Turn:
        messages = asked.body["messages"]
        new = takewhile(lambda message: message["role"] != "assistant", reversed(messages))
        said = json.dumps(list(new))
        name = re.search(r"Look at (\w\.py)\.", said)
        if name is None or "tool_result" in said or "detailed summary" in said:
            return Turn(text="Done.", usage=Usage(input=10, output=1))
        calls = tuple(tool_call(f"{name[1]}-{number}", LOOK, {"path": name[1]}) for number in (1, 2))
        usage = full if name[1] == "d.py" else Usage(input=10, output=1)
        return Turn(text=f"I look at {name[1]}.", tool_calls=calls, usage=usage)

    prompts = [name if name == "/compact" else f"Look at {name}.py." for name in "a b /compact c d /compact e".split()]
    return list(reduced(claude_session(answer, prompts)["session"]))


def claude_code_branches() -> list[Json]:
    """A session that is resumed at its first answer, so that its second prompt is on a branch that was left."""

    def answer(asked: Asked) -> Turn:
        return Turn(text="Done.", usage=Usage(input=10, output=1))

    lines = claude_session(answer, TASKS)["session"]
    first = next(line for line in lines if line["type"] == "assistant")
    more = {"resume": first["sessionId"], "extra_args": {"resume-session-at": first["uuid"]}}
    return list(reduced(claude_session(answer, ("And now the types.",), **more)["session"]))


KEPT = frozenset(
    "type subtype uuid parentUuid logicalParentUuid isSidechain isMeta isCompactSummary isVisibleInTranscriptOnly "
    "compactMetadata sessionId agentId promptId error isApiErrorMessage operation sourceToolAssistantUUID leafUuid "
    "version".split()
)
LEFT_OUT = re.compile(r"api-request.*|atis-latch|cost-state|last-prompt|mode|tools-used")
"""Types of lines of which a few come at times of their own, and which are no part of the conversation."""
COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def reduced(lines: Iterable[Json]) -> Iterator[Json]:
    """Yield the lines of conversations, without what concerns the machine."""
    for line in lines:
        if LEFT_OUT.fullmatch(line["type"]):
            continue
        kept = {
            name: value for name, value in line.items() if name in KEPT and (value is not None or name == "parentUuid")
        }
        if isinstance(line.get("message"), dict):
            message = {name: line["message"].get(name) for name in ("id", "role", "model", "content", "stop_reason")}
            usage = line["message"].get("usage")
            counts = {"usage": {name: usage[name] for name in COUNTS}} if usage else {}
            kept["message"] = {name: value for name, value in message.items() if value is not None} | counts
        if isinstance(line.get("attachment"), dict):
            kept["attachment"] = {"type": line["attachment"]["type"]}
        if isinstance(line.get("toolUseResult"), dict) and "agentId" in line["toolUseResult"]:
            kept["toolUseResult"] = {"agentId": line["toolUseResult"]["agentId"]}
        yield kept


# --- all of them

MADE: dict[str, Callable[[], Iterable[Json]]] = {
    "openai_chat.jsonl": openai_chat,
    "openai_chat_langchain.json": langchain_chat,
    "openai_responses.json": openai_responses,
    "openai_agents.json": openai_agents,
    "openai_agents_mcp.json": openai_agents_mcp,
    "anthropic.json": anthropic_messages,
    "claude_code.jsonl": claude_code,
    "claude_code_ends.jsonl": claude_code_ends,
    "claude_code_branches.jsonl": claude_code_branches,
    "claude_code_compacted.jsonl": claude_code_compacted,
}
IDS = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\b(?:msg|resp|req|rs|fc|sig|chatcmpl)_[0-9a-z_-]+|\ba[0-9a-f]{16}\b"
)
TIMES = re.compile(r'("(?:created|created_at|completed_at)"|duration_ms): [0-9.]+')


def scrubbed(text: str, home: str) -> str:
    """Return the text with ids in the order of their appearance, without times and the paths of this machine."""
    ids: dict[str, str] = {}
    text = text.replace(home, "/repo").replace(re.sub(r"[\W_]", "-", home), "-repo")
    return IDS.sub(lambda found: ids.setdefault(found.group(), f"id-{len(ids) + 1}"), TIMES.sub(r"\1: 0", text))


def write(name: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ.clear()
        os.environ.update({"PATH": os.defpath, "HOME": home, "OPENAI_API_KEY": "none"})
        values = list(MADE[name]())
    lines = [json.dumps(value, ensure_ascii=False) for value in values]
    text = "\n".join(lines) if name.endswith(".jsonl") else "[\n" + ",\n".join(lines) + "\n]"
    FIXTURES.mkdir(parents=True, exist_ok=True)
    (FIXTURES / name).write_text(scrubbed(text, home) + "\n", encoding="utf-8")


def main() -> None:
    for name in sys.argv[1:] or MADE:
        write(name)
        sys.stdout.write(f"{name}: {(FIXTURES / name).stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
