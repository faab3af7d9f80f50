"""An agent of LangChain's `create_agent` that repeats a failing test run and gets guidance.

`python examples/langchain_agent.py` runs it on Anthropic's client against a scripted provider, offline. It needs
`pip install langchain-anthropic` beside `reasonblocks-langchain` and `reasonblocks-testing`.
"""

from __future__ import annotations

import textwrap

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langsmith import tracing_context
from loop_agent import DESCRIPTIONS, SCRIPT, SYSTEM_PROMPT, TASK, TOOLS

from reasonblocks import ReasonBlocks
from reasonblocks_testing.server import ScriptedServer

tools = [StructuredTool.from_function(tool, description=DESCRIPTIONS[name]) for name, tool in TOOLS.items()]


def main() -> None:
    rb = ReasonBlocks()
    with ScriptedServer(SCRIPT) as server, tracing_context(enabled=False):  # in place of a provider
        model = init_chat_model("anthropic:claude-sonnet-5-5", base_url=server.anthropic_url, api_key="not needed")
        with rb.middleware(agent_name="bugfixer") as mw:
            agent = create_agent(model, tools, system_prompt=SYSTEM_PROMPT, middleware=[mw])
            result = agent.invoke({"messages": [HumanMessage(TASK)]})

    (run,) = mw.runs.values()
    for entry in run.step_log:
        print(f"call {entry.step}: {entry.fsm_state}")
        for text in entry.intervention_texts:
            print(textwrap.indent(text, "  | "))
        print(f"  -> {', '.join(entry.tool_calls) or result['messages'][-1].text}")
    print(f"{run.outcome}: {len(run.step_log)} calls")


if __name__ == "__main__":
    main()
