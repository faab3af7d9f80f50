"""An agent of the OpenAI Agents SDK with a budget, a second look, more effort while it is stuck, and an advisor.

`python examples/levers_openai_agents.py` runs it on OpenAI's client against a scripted provider, offline. It needs
`reasonblocks-openai-agents` and `reasonblocks-testing`.
"""

from __future__ import annotations

import asyncio

from agents import OpenAIProvider, RunConfig
from loop_agent import TASK, WITH_A_LOOK, advise, print_levers
from openai import AsyncOpenAI
from openai_agents_run import AGENT

from reasonblocks import Budget, Escalate, ReasonBlocks
from reasonblocks_openai_agents import steering_of
from reasonblocks_testing.server import ScriptedServer


async def main() -> None:
    rb = ReasonBlocks(
        budget=Budget(calls=12),
        second_look="always",
        escalate=Escalate(effort="high", after=0, dwell=2),
        advisor=advise,  # or reasonblocks_openai_agents.ask_model(a model)
    )
    with ScriptedServer(WITH_A_LOOK) as server:  # in place of a provider; with a real one, leave out `run_config`
        async with AsyncOpenAI(base_url=server.openai_url, api_key="not needed") as client:
            offline = RunConfig(model_provider=OpenAIProvider(openai_client=client), tracing_disabled=True)
            result = await rb.openai_run(AGENT, TASK, run_config=offline)
    print_levers(steering_of(result).step_log)


if __name__ == "__main__":
    asyncio.run(main())
