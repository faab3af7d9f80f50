"""An agent of the OpenAI Agents SDK that repeats a failing test run and gets guidance.

`python examples/openai_agents_run.py` runs it on OpenAI's client against a scripted provider, offline. It needs
`reasonblocks-openai-agents` and `reasonblocks-testing`.
"""

from __future__ import annotations

import asyncio
import textwrap

from agents import Agent, OpenAIProvider, RunConfig, function_tool
from loop_agent import DESCRIPTIONS, SCRIPT, SYSTEM_PROMPT, TASK, TOOLS
from openai import AsyncOpenAI

from reasonblocks import ReasonBlocks
from reasonblocks_openai_agents import steering_of
from reasonblocks_testing.server import ScriptedServer

AGENT = Agent(
    name="bugfixer",
    instructions=SYSTEM_PROMPT,
    model="gpt-6.2-sol",
    tools=[function_tool(tool, description_override=DESCRIPTIONS[name]) for name, tool in TOOLS.items()],
)


async def main() -> None:
    rb = ReasonBlocks()
    with ScriptedServer(SCRIPT) as server:  # in place of a provider; with a real one, leave out `run_config`
        async with AsyncOpenAI(base_url=server.openai_url, api_key="not needed") as client:
            offline = RunConfig(model_provider=OpenAIProvider(openai_client=client), tracing_disabled=True)
            result = await rb.openai_run(AGENT, TASK, run_config=offline)  # in place of Runner.run(AGENT, TASK, ...)

    run = steering_of(result)
    for entry in run.step_log:
        print(f"call {entry.step}: {entry.fsm_state}")
        for text in entry.intervention_texts:
            print(textwrap.indent(text, "  | "))
        print(f"  -> {', '.join(entry.tool_calls) or result.final_output}")
    print(f"{run.outcome}: {len(run.step_log)} calls")


if __name__ == "__main__":
    asyncio.run(main())
