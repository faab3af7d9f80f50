"""Runs parts of an agent's run in a process of their own: `python -m tests.langchain.other_process DB PART...`.

Part 0 asks; later parts approve what a human was asked. Prints a line for each part: its
step log and the run's outcome.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from reasonblocks_langchain import middleware
from tests.langchain.world import QUESTION, agent, scripted, thread
from tests.steered import steering

CALLS = 4


def run_part(database: str, part: int) -> None:
    mw = middleware(steering(), run_id="run")
    human = HumanInTheLoopMiddleware(interrupt_on={"look": True})
    with SqliteSaver.from_conn_string(database) as saver:
        steered = agent(scripted(CALLS), human, mw, checkpointer=saver)
        given: Any = QUESTION if part == 0 else Command(resume={"decisions": [{"type": "approve"}]})
        steered.invoke(given, thread())
    run = next(iter(mw.runs.values()))
    print(json.dumps({"log": [entry.as_dict() for entry in run.step_log], "run": run.run_id, "outcome": run.outcome}))


if __name__ == "__main__":
    for number in map(int, sys.argv[2:]):
        run_part(sys.argv[1], number)
