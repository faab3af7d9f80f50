"""Answers an agent that asks a person, in a process of its own: `python -m tests.langchain.answered_process DB ANSWER`.

Prints one line: the steps of this process, the requests that were told the answer, and the run's outcome.
"""

from __future__ import annotations

import json
import sys

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from tests.langchain.test_interrupts import asking, scripted, told
from tests.langchain.world import agent, thread


def main(database: str, answer: str) -> None:
    mw, model = asking(), scripted()
    with SqliteSaver.from_conn_string(database) as saver:
        agent(model, mw, checkpointer=saver).invoke(Command(resume=answer), thread())
    steps = [entry.step for entry in mw.step_log]
    print(json.dumps({"steps": steps, "told": told(model), "outcome": mw.runs["run"].outcome}))


if __name__ == "__main__":
    main(*sys.argv[1:])
