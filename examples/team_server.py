"""`./dev serve`: a ReasonBlocks server with the demo's runs, other samples, a live run and a card to be answered.

The data is in a temporary folder, unless `--data FOLDER` names another one. All options go to `reasonblocks serve`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from broken_repo import passing, test_report, write_to
from scripted_model import ScriptedModel
from two_runs import TASK, messages_of

from reasonblocks import HttpSink, ReasonBlocks, SteeringSession, Step, StepInput, StepOutcome, ToolCall, ToolResult
from reasonblocks.types import Mode, RunOptions, Usage
from reasonblocks_threads import Actor, Cause, Evidence, Proposal, Threads

MODEL = "scripted-model"
STEP_S = (0.1, 0.5)
"""Seconds of a step of the finished runs, the least and the most."""
PAUSE_S = 2.0
"""Seconds of a step of the live run."""
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
MISSING = "error: no matching distribution for driver"
STUCK: Sequence[Turn] = (
    ("I install the driver.", "shell", "install driver", MISSING),
    ("I install the driver again.", "shell", "install driver", MISSING),
    ("Maybe it works with the flag.", "shell", "install driver --pre", MISSING),
    ("I try the first command once more.", "shell", "install driver", MISSING),
    ("I install the driver.", "shell", "install driver", MISSING),
    ("It should be there now.", "shell", "install driver", MISSING),
    ("Again.", "shell", "install driver", MISSING),
)
FOUND: Sequence[Turn] = (
    ("The name may be wrong. I look for it.", "search", "printer driver", "packages: cups-driver, foo2"),
    ("cups-driver fits this printer.", "shell", "install cups-driver", "installed cups-driver 2.4"),
    ("I print a page to check it.", "shell", "print test.txt", "printed 1 page"),
    ("I note the name for the others.", "edit_file", "docs/printer.md", "saved"),
    ("I read the note once more.", "read_file", "docs/printer.md", "Printer: install cups-driver 2.4"),
)
LIVE: Sequence[Turn] = (
    ("I read the queue.", "read_queue", "orders", "12 orders wait"),
    ("I take the next order.", "take_order", "next", "order 4711: 3 x 12.5"),
    ("I book it.", "book", "4711", "error 409: the order is locked"),
    ("I book it again.", "book", "4711", "error 409: the order is locked"),
    ("I try it once more.", "book", "4711", "error 409: the order is locked"),
    ("It may be free by now.", "book", "4711", "error 409: the order is locked"),
    ("One more time.", "book", "4711", "error 409: the order is locked"),
    ("I release the lock first.", "release", "4711", "released"),
    ("Now I book it.", "book", "4711", "booked"),
    ("I look if it is in the books.", "read_book", "4711", "4711: 37.50, booked"),
)


def main(arguments: Sequence[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    with ExitStack() as stack:
        home = os.environ["REASONBLOCKS_HOME"] = stack.enter_context(tempfile.TemporaryDirectory())
        os.environ.setdefault("REASONBLOCKS_THREADS", ask_a_person(Path(home) / "threads.db"))
        server = stack.enter_context(serve(arguments))
        stack.callback(server.terminate)
        assert server.stdout is not None
        with suppress(KeyboardInterrupt):
            if line := server.stdout.readline():
                show(stack, **json.loads(line))
            return server.wait()
    return 0


def end_with(parent: int) -> None:
    """End this process when its parent has ended, which may be killed without a word to us."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def serve(arguments: Sequence[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "reasonblocks", "serve", "--json", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)  # Ctrl-C ends us first


def ask_a_person(database: Path) -> str:
    """Open a thread about one of the runs, which asks for a person's consent on the dashboard. Return its database."""
    cause = Cause(
        kind="run_failed",
        key="driver-1",
        title="installer did not find the printer's driver",
        run_id="driver-1",
        evidence=(Evidence(id="output", label="output of the last command", text=MISSING),),
    )
    proposals = [
        Proposal.of_intent("Let somebody who knows the printer install its driver.", confidence=0.9),
        Proposal.of_context("The agent has tried the same command 6 times.", confidence=0.9),
        Proposal.of_action("hand_off", {"to": "the IT desk", "reason": "no such driver"}, confidence=0.8),
    ]
    with Threads(database) as threads:
        threads.open(cause, proposals=proposals, by=Actor.agent("installer"), run="ended")
        threads.drain()
    return str(database)


def show(stack: ExitStack, url: str, data: str, key: str | None, login: str | None) -> None:
    """Fill a new server with runs, and print its address and a login link."""
    if key is not None:  # without a new key, an earlier start has filled the folder
        print("Streaming some runs to the server ...", flush=True)
        finished_runs(url, key)
        ended = threading.Event()
        live = threading.Thread(target=live_runs, args=(url, key, ended))
        live.start()
        stack.callback(live.join)
        stack.callback(ended.set)
        print(f"Key for runs of your own: {key}")
    print(f"Dashboard, for one login within 15 minutes: {login}")
    print(f"ReasonBlocks server: {url} (data in {data}). Ctrl-C ends it.", flush=True)


def finished_runs(url: str, key: str) -> None:
    """Stream runs of several agents at the same time. All decisions are made in this process."""
    upgrade = RunOptions(
        agent_name="upgrader", task="Raise billing to version 2.", model=MODEL, experiment_id="guidance"
    )
    lookup = RunOptions(agent_name="answerer", task="When may a customer return goods?", model=MODEL)
    driver = RunOptions(agent_name="installer", task="Install the printer's driver.", model=MODEL)
    with ReasonBlocks(sinks=[HttpSink(url, key)], base_url="") as rb, ThreadPoolExecutor() as pool:
        runs = [
            pool.submit(demo_run, rb, "demo-plain", "observe"),
            pool.submit(demo_run, rb, "demo-steered", "steer"),
            pool.submit(play, rb, LOOKUP, "success", replace(lookup, run_id="lookup")),
            pool.submit(play, rb, STUCK, "failure: no driver", replace(driver, run_id="driver-1")),
            pool.submit(play, rb, STUCK, "failure: no driver", replace(driver, run_id="driver-2", mode="observe")),
            pool.submit(play, rb, (*STUCK[:2], *FOUND), "success", replace(driver, run_id="driver-3")),
            pool.submit(play, rb, (*STUCK[:3], *FOUND), "success", replace(driver, run_id="driver-4")),
        ]
        for number in range(8):
            options = replace(upgrade, run_id=f"upgrade-{number}", experiment_id="guidance")
            runs.append(pool.submit(play, rb, UPGRADE, "success", options))
        for run in runs:
            run.result()


def demo_run(rb: ReasonBlocks, run_id: str, mode: Mode) -> None:
    """Run the agent of `./dev demo`. With the mode "observe", it gets no guidance and repeats itself."""
    with tempfile.TemporaryDirectory() as folder:
        root = write_to(Path(folder).resolve())
        with rb.middleware(run_id=run_id, agent_name="bugfixer", task=TASK, mode=mode) as steering:
            _, at_limit = messages_of(ScriptedModel(), root, steering)
            steering.finish("success" if passing(test_report(root)) and not at_limit else "failure: tests fail")


def play(rb: ReasonBlocks, turns: Sequence[Turn], outcome: str, options: RunOptions) -> None:
    """Stream a run of these steps, which take their time."""
    with rb.session(options) as session:
        for _ in steps(session, turns):
            time.sleep(random.uniform(*STEP_S))
        session.finish(outcome)


def live_runs(url: str, key: str, ended: threading.Event) -> None:
    """Run an agent repeatedly and slowly. The server evaluates its steps, so people can send it notes."""
    with ReasonBlocks(base_url=url, api_key=key) as rb:
        while not ended.is_set():
            with rb.session(model=MODEL, agent_name="clerk", task="Book the waiting orders.") as session:
                for _ in steps(session, LIVE):
                    if ended.wait(PAUSE_S):
                        session.finish("stopped: the demo has ended")
                        break


def steps(session: SteeringSession, turns: Sequence[Turn]) -> Iterator[None]:
    """Take these steps and a last one without a tool call. Yield after each."""
    completed = None
    for number, (thought, tool, target, output) in enumerate([*turns, ("That is all.", "", "", "")]):
        decision = session.begin_step(StepInput(completed=completed, default_model=MODEL))
        calls = (ToolCall(id=f"call-{number}", name=tool, arguments={"target": target}),) if tool else ()
        usage = Usage(input=900 + 120 * number, output=40)
        session.end_step(decision, StepOutcome(model=MODEL, text=thought, tool_calls=calls, usage=usage))
        results = tuple(
            ToolResult(call_id=call.id, output=output, is_error=output.startswith("error")) for call in calls
        )
        completed = Step(thought=thought, tool_calls=calls, tool_results=results)
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
