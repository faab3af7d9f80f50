"""`./dev serve`: a ReasonBlocks server with the demo's runs, some others, and one that goes on until you stop it.

The data is in a temporary folder, unless `--data FOLDER` names another one. Other options go to `reasonblocks serve`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count, cycle
from pathlib import Path

from broken_repo import passing, test_report, write_to
from scripted_model import ScriptedModel
from two_runs import TASK, messages_of

from reasonblocks import HttpSink, ReasonBlocks, Step, StepInput, StepOutcome, ToolCall, ToolResult
from reasonblocks.types import RunOptions, Usage

PAUSE_S = 2.0
"""Seconds between two steps of the live run."""
Turn = tuple[str, str, str, str]
"""A step: the thought, the tool, its argument and its output."""

UPGRADE: Sequence[Turn] = (
    ("I look at the requirements.", "read_file", "requirements.txt", "billing==1.4\ntill==2.0"),
    ("I raise billing to 2.1.", "edit_file", "requirements.txt", "ok"),
    ("I run the tests.", "run_tests", "", "2 failed: test_invoice, test_refund: TypeError: total() needs a currency"),
    ("The new version wants a currency.", "read_file", "shop/invoice.py", "def total(lines): return sum(lines)"),
    ("I add the argument.", "edit_file", "shop/invoice.py", "ok"),
    ("I run the tests again.", "run_tests", "", "14 passed"),
)
LOOKUP: Sequence[Turn] = (
    ("I search the manual for the refund rule.", "search", "refund", "3 pages: returns.md, tax.md, cards.md"),
    ("returns.md should have it.", "read_file", "returns.md", "Refunds are possible within 30 days."),
)
STUCK: Sequence[Turn] = (
    ("I install the driver.", "shell", "install driver", "error: no matching distribution for driver"),
    ("I install the driver again.", "shell", "install driver", "error: no matching distribution for driver"),
    ("Maybe it works with the flag.", "shell", "install driver --pre", "error: no matching distribution for driver"),
    ("I try the first command once more.", "shell", "install driver", "error: no matching distribution for driver"),
    ("I install the driver.", "shell", "install driver", "error: no matching distribution for driver"),
    ("It should be there now.", "shell", "install driver", "error: no matching distribution for driver"),
    ("Again.", "shell", "install driver", "error: no matching distribution for driver"),
)
LIVE: Sequence[Turn] = (
    ("I read the queue.", "read_queue", "orders", "12 orders wait"),
    ("I take the next order.", "take_order", "next", "order 4711: 3 x 12.5"),
    ("I book it.", "book", "4711", "error 409: the order is locked"),
    ("I book it again.", "book", "4711", "error 409: the order is locked"),
    ("I try it once more.", "book", "4711", "error 409: the order is locked"),
    ("I release the lock first.", "release", "4711", "released"),
    ("Now I book it.", "book", "4711", "booked"),
)


def main(arguments: Sequence[str]) -> int:
    with ExitStack() as stack:
        given = [*arguments]
        if "--data" not in given:
            given += ["--data", stack.enter_context(tempfile.TemporaryDirectory())]
        process = stack.enter_context(serve(given))
        assert process.stdout is not None
        if not (line := process.stdout.readline()):
            return process.wait()
        server = json.loads(line)
        try:
            if server["key"] is not None:  # the folder is new
                finished_runs(server["url"], server["key"])
            print(f"ReasonBlocks server: {server['url']}, data in {server['data']}", flush=True)
            print(f"Open the dashboard: {server['login']}", flush=True)
            if server["key"] is not None:
                print(f"Key for your own runs: {server['key']}", flush=True)
                live_run(server["url"], server["key"])
            print("Ctrl-C ends it.", flush=True)
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()
            return process.wait()


def serve(arguments: Sequence[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "reasonblocks", "serve", "--json", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finished_runs(url: str, key: str) -> None:
    """Stream runs of several agents to the server, with all decisions made in this process."""
    with tempfile.TemporaryDirectory() as empty, ReasonBlocks(sinks=[HttpSink(url, key)], base_url="") as rb:
        os.environ["REASONBLOCKS_HOME"] = empty  # patterns that the user has added would change the runs
        demo_run(rb, "plain", "observe")
        demo_run(rb, "steered", "steer")
        play(rb, "upgrade", "raise billing to version 2", UPGRADE, "success", agent_name="upgrader")
        play(rb, "lookup", "how long can a customer return goods?", LOOKUP, "success", agent_name="answerer")
        play(rb, "stuck", "install the printer's driver", STUCK, "failure: no driver", agent_name="installer")
        play(rb, "observed", "install the scanner's driver", STUCK, "failure", agent_name="installer", mode="observe")


def demo_run(rb: ReasonBlocks, name: str, mode: str) -> None:
    """Run the demo's agent; in the mode "observe" it is told nothing, so that it repeats itself."""
    with tempfile.TemporaryDirectory() as folder:
        root = write_to(Path(folder).resolve())
        options = RunOptions(run_id=f"demo-{name}", agent_name="bugfixer", task=TASK, mode="observe" if mode == "observe" else "steer")
        with rb.middleware(options) as steering:
            _, at_limit = messages_of(ScriptedModel(), root, steering)
            steering.finish("success" if passing(test_report(root)) and not at_limit else "failure: tests fail")


def play(rb: ReasonBlocks, run_id: str, task: str, turns: Sequence[Turn], outcome: str, **options: object) -> None:
    """Stream a run of given steps."""
    with rb.session(run_id=run_id, task=task, model="demo-model", **options) as session:
        for _ in steps(session, turns):
            pass
        session.finish(outcome)


def steps(session, turns) -> Iterator[None]:
    """Take the given steps, one at a time."""
    completed = None
    for number, (thought, tool, argument, output) in enumerate(turns):
        decision = session.begin_step(StepInput(completed=completed, default_model="demo-model"))
        call = ToolCall(id=f"call-{number}", name=tool, arguments={"target": argument})
        usage = Usage(input=900 + 120 * number, output=40)
        session.end_step(decision, StepOutcome(model="demo-model", text=thought, tool_calls=(call,), usage=usage))
        result = ToolResult(call_id=call.id, output=output, is_error=output.startswith("error"))
        completed = Step(thought=thought, tool_calls=(call,), tool_results=(result,))
        yield
    session.end_step(
        session.begin_step(StepInput(completed=completed, default_model="demo-model")),
        StepOutcome(model="demo-model", text="Done."),
    )


def live_run(url: str, key: str) -> None:
    """Start a run that the server evaluates and to which you can send notes, in a thread that ends with the process."""
    ...


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
