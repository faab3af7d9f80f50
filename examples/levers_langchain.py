"""An agent of LangChain with a budget, a second look, a stronger model while it is stuck, and an advisor.

`python examples/levers_langchain.py` runs it on Anthropic's client against a scripted provider, offline. It needs
`pip install langchain-anthropic` beside `reasonblocks-langchain` and `reasonblocks-testing`.
"""

from __future__ import annotations

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_agent import tools
from langchain_core.messages import HumanMessage
from langsmith import tracing_context
from loop_agent import SYSTEM_PROMPT, TASK, WITH_A_LOOK, advise, print_levers

from reasonblocks import Budget, Escalate, ReasonBlocks
from reasonblocks_testing.server import ScriptedServer


def main() -> None:
    with ScriptedServer(WITH_A_LOOK) as server, tracing_context(enabled=False):  # in place of a provider
        own, strong = (
            init_chat_model(f"anthropic:claude-{name}-5-5", base_url=server.anthropic_url, api_key="not needed")
            for name in ("haiku", "opus")
        )
        rb = ReasonBlocks(
            budget=Budget(calls=12),
            second_look="always",
            escalate=Escalate(model=strong, after=0, dwell=2),
            advisor=advise,  # a chat model is taken as it is
        )
        with rb.middleware(agent_name="bugfixer") as mw:
            agent = create_agent(own, tools, system_prompt=SYSTEM_PROMPT, middleware=[mw])
            agent.invoke({"messages": [HumanMessage(TASK)]})
    print_levers(mw.step_log)


if __name__ == "__main__":
    main()
