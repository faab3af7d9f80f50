"""Writes the recorded sessions of coding agents that the readers of `traces` are tested with.

`python tools/agent_fixtures.py NAME` needs an environment with `pytest`, `numpy`, `pydantic` and `typing_extensions`,
and, by the file: `bedrock.json`: `strands-agents[anthropic]`; `mini_swe_agent.json`: `mini-swe-agent`; the others:
Node and a folder NPM with `npm install ai @ai-sdk/openai zod @openai/codex @mariozechner/pi-coding-agent`. No request
leaves this machine: the agents inherit no settings, and the model is scripted, on loopback.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = map(str, (ROOT, *ROOT.glob("packages/*/src")))

from trace_fixtures import FIXTURES, MODEL, TASKS, TURNS, Json, in_turn, look  # noqa: E402

from reasonblocks_testing import Turn, tool_call  # noqa: E402
from reasonblocks_testing.server import Asked, ScriptedServer  # noqa: E402

NPM = Path(os.environ.get("NPM", "node_modules").removesuffix("node_modules"), "node_modules").resolve()
PATH = os.environ["PATH"]
AI = """
import { generateText, tool, stepCountIs } from "ai";
import { createOpenAI } from "@ai-sdk/openai";
import { z } from "zod";
const openai = createOpenAI({ baseURL: process.env.BASE, apiKey: "none" });
const look = tool({
  inputSchema: z.object({ path: z.string() }),
  execute: async ({ path }) => {
    if (path === "b.py") throw new Error("FileNotFoundError: b.py");
    return path === "c.py" ? { text: "c.py is empty" } : `${path} is empty`;
  },
});
const messages = [];
for (const content of JSON.parse(process.env.TASKS)) {
  messages.push({ role: "user", content });
  const model = openai.chat(process.env.MODEL);
  const result = await generateText({ model, tools: { look }, stopWhen: stepCountIs(9), messages });
  messages.push(...result.response.messages);
}
console.log(JSON.stringify(messages));
"""


def called(command: list[str], home: Path, **more: str) -> str:
    """Return what a command prints, which knows nothing of its user's settings."""
    done = subprocess.run(
        command,
        env={"PATH": PATH, "HOME": str(home), "OPENAI_API_KEY": "none", **more},
        cwd=home,
        capture_output=True,
        check=True,
        text=True,
        timeout=100,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout


def in_shell(tool: str, field: str) -> Callable[[Asked], Turn]:
    """Return the answers in which the files are read by commands of a shell."""
    commands = (("echo a.py is empty", "cat b.py"), ("echo c.py is empty",), (), ())

    def answer(asked: Asked) -> Turn:
        turn, typed = TURNS[asked.answers], commands[asked.answers]
        calls = [tool_call(call.id, tool, {field: one}) for call, one in zip(turn.tool_calls, typed)]
        return Turn(text=turn.text, reasoning=turn.reasoning, tool_calls=tuple(calls), usage=turn.usage)

    return answer


def ai_sdk(home: Path) -> str:
    """The messages of a loop with `generateText` of Vercel's AI SDK."""
    script = NPM.parent / "agent_fixture.mjs"
    script.write_text(AI)
    try:
        with ScriptedServer(in_turn) as server:
            return called(["node", str(script)], home, BASE=server.openai_url, MODEL=MODEL, TASKS=json.dumps(TASKS))
    finally:
        script.unlink()


def bedrock(home: Path) -> str:
    """The messages of an agent of Strands, which are those of Bedrock's Converse whatever the model."""
    strands: Any = import_module("strands")
    model_class: Any = import_module("strands.models.anthropic").AnthropicModel
    with ScriptedServer(in_turn) as server:
        model = model_class(
            client_args={"base_url": server.anthropic_url, "api_key": "none"}, model_id=MODEL, max_tokens=999
        )
        agent = strands.Agent(model=model, tools=[strands.tool(look)], callback_handler=None)
        for task in TASKS:
            agent(task)
    return json.dumps(agent.messages)


def codex(home: Path) -> str:
    """A session of Codex with two prompts, without the instructions and the state of the machine."""
    with ScriptedServer(in_shell("exec_command", "cmd")) as server:
        settings = home / ".codex/config.toml"
        settings.parent.mkdir()
        settings.write_text(
            f'model = "{MODEL}"\nmodel_provider = "scripted"\n[analytics]\nenabled = false\n'
            f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{server.openai_url}"\n'
            'env_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
        )
        start = [str(NPM / ".bin/codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        for more, task in zip(([], ["resume", "--last"]), TASKS):
            called([*start, *more, task], home)
    (file,) = home.rglob("rollout-*.jsonl")
    lines = map(json.loads, file.read_text().splitlines())
    return "\n".join(json.dumps(shortened(line)) for line in lines if line["type"] != "world_state")


def shortened(line: Json) -> Json:
    """Return a line without long instructions."""
    payload = {name: value for name, value in line["payload"].items() if name not in ("base_instructions", "item")}
    if payload.get("role") == "developer":
        payload["content"] = [{**part, "text": "(trimmed)"} for part in payload["content"]]
    return {**line, "payload": payload}


def pi(home: Path) -> str:
    """A session of pi with two prompts."""
    with ScriptedServer(in_shell("bash", "command")) as server:
        settings = home / ".pi/agent/models.json"
        settings.parent.mkdir(parents=True)
        model = {"id": MODEL, "name": MODEL, "reasoning": False, "input": ["text"], "contextWindow": 99_999}
        model |= {"maxTokens": 999, "cost": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)}
        provider = {"baseUrl": server.openai_url, "apiKey": "none", "api": "openai-completions", "models": [model]}
        settings.write_text(json.dumps({"providers": {"scripted": provider}}))
        start = [str(NPM / ".bin/pi"), "-p", "--provider", "scripted", "--model", MODEL]
        for more, task in zip(([], ["--continue"]), TASKS):
            called([*start, *more, task], home, PI_OFFLINE="1", PI_SKIP_VERSION_CHECK="1")
    (file,) = home.rglob("sessions/**/*.jsonl")
    return file.read_text()


def mini_swe_agent(home: Path) -> str:
    """A trajectory of mini-swe-agent, without its long prompt and settings."""
    submit = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo done"

    def answer(asked: Asked) -> Turn:
        turn = in_shell("bash", "command")(asked)
        calls = turn.tool_calls or (tool_call("c4", "bash", {"command": submit}),)
        return Turn(text=turn.text, reasoning=turn.reasoning, tool_calls=calls, usage=turn.usage)

    with ScriptedServer(answer) as server:
        base = dict.fromkeys(("OPENAI_API_BASE", "OPENAI_BASE_URL"), server.openai_url)
        quiet = {
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_GLOBAL_CONFIG_DIR": str(home),
        }
        file = home / "trajectory.json"
        start = [str(Path(sys.executable).with_name("mini")), "-t", TASKS[0], "-m", f"openai/{MODEL}", "-y"]
        called(
            [*start, "--exit-immediately", "-o", str(file)], home, LITELLM_LOCAL_MODEL_COST_MAP="True", **base, **quiet
        )
    run = json.loads(file.read_text())
    del run["info"]["config"]
    run["messages"][1]["content"] = f"Please solve this issue: {TASKS[0]}"
    return json.dumps(run)


MADE: Mapping[str, Callable[[Path], str]] = {
    "ai_sdk.json": ai_sdk,
    "bedrock.json": bedrock,
    "codex.jsonl": codex,
    "pi.jsonl": pi,
    "mini_swe_agent.json": mini_swe_agent,
}
IDS = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|_[0-9a-f]{8}(?=\d{6}\b)")
TIMES = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z?|(?<=[ :])17\d{8}(?:\d{3})?(?:\.\d+)?\b|(?<=[ :])1[89]\d{8}(?:\d{3})?(?:\.\d+)?\b"
)


def scrubbed(text: str, home: Path) -> str:
    """Return the text with ids in the order of their appearance, without times and the paths of this machine."""
    ids: dict[str, str] = {}
    text = text.replace(str(home), "/repo").replace(str(home).replace("/", "-"), "-repo")
    text = TIMES.sub(lambda found: "0" if "-" not in found.group() else "2026-01-01T00:00:00Z", text)
    return IDS.sub(lambda found: ids.setdefault(found.group(), f"id-{len(ids) + 1}-"), text)


def main() -> None:
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            text = scrubbed(MADE[name](home), home)
        (FIXTURES / name).write_text(text.strip() + "\n", encoding="utf-8")
        sys.stdout.write(f"{name}: {len(text):,} characters\n")


if __name__ == "__main__":
    main()
