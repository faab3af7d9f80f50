"""`./dev serve`: a ReasonBlocks server with the demo's runs, other samples, a live run and a card to be answered.

All agents are scripts, as their names say; the decisions about them are real. The data is in a temporary folder, unless
`--data FOLDER` names another one, which gets samples only if it is empty. All options go to `reasonblocks serve`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import httpx
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

EXPERIMENT = "scripted-sample"
UNITS = 78
"""Units of the experiment, of which each arm gets at least 30."""
UNIT_STEP_S = (0.005, 0.02)
BASES = ("REASONBLOCKS_DATA", "REASONBLOCKS_DATABASE_URL", "QDRANT_URL", "QDRANT_API_KEY")
"""Variables that could name a real server's data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """An agent that takes its `turns`, and those of `heeds` once a monitor tells it something.

    It has succeeded if a step had the output `goal`.
    """

    turns: Sequence[Turn]
    heeds: Sequence[Turn] = ()
    goal: str = ""


UPGRADE = Script(
    goal="14 passed",
    turns=(
        ("I look at the requirements.", "read_file", "requirements.txt", "billing==1.4\ntill==2.0"),
        ("I raise billing to 2.1.", "edit_file", "requirements.txt", "ok"),
        (
            "I run the tests.",
            "run_tests",
            "",
            "2 failed: test_invoice, test_refund: TypeError: total() needs a currency",
        ),
        ("The new version wants a currency.", "read_file", "shop/invoice.py", "def total(lines): return sum(lines)"),
        ("I add the argument.", "edit_file", "shop/invoice.py", "ok"),
        ("I run the tests again.", "run_tests", "", "14 passed"),
    ),
)
LOOKUP = Script(
    goal="Refunds are possible within 30 days.",
    turns=(
        ("I search the manual for the refund rule.", "search", "refund", "3 pages: returns.md, tax.md, cards.md"),
        ("returns.md should have it.", "read_file", "returns.md", "Refunds are possible within 30 days."),
    ),
)
PRINTED = "2 passed: test_queue, test_page"
MISSING = "no package has this name"
STUCK: Sequence[Turn] = (
    ("I read the ticket.", "read_file", "ticket.md", "The printer in room 2 prints nothing."),
    ("I look for the printer.", "shell", "lpinfo -v", "network socket://10.0.0.7"),
    ("I install the driver.", "shell", "install driver", MISSING),
    ("I install the driver again.", "shell", "install driver", MISSING),
    ("Now with the flag.", "shell", "install driver --pre", MISSING),
    ("I try the first command once more.", "shell", "install driver", MISSING),
    ("I install the driver.", "shell", "install driver", MISSING),
    ("It should be there now.", "shell", "install driver", MISSING),
    ("Again.", "shell", "install driver", MISSING),
    ("And again.", "shell", "install driver", MISSING),
)
FOUND: Sequence[Turn] = (
    ("So the name is wrong. I look for it.", "search", "printer driver", "packages: cups-driver, foo2"),
    ("I look which printer this is.", "read_file", "docs/printer.md", "Printer: Foo 2, over CUPS"),
    ("cups-driver fits it.", "shell", "install cups-driver", "installed cups-driver 2.4"),
    ("I run its tests.", "run_tests", "printer", PRINTED),
)
EASY = Script(turns=FOUND, goal=PRINTED)
HEEDS = Script(turns=STUCK, heeds=FOUND, goal=PRINTED)
IGNORES = Script(turns=STUCK, goal=PRINTED)
LIVE = Script(
    turns=(
        ("I read the queue.", "read_queue", "orders", "12 orders wait"),
        ("I take the next order.", "take_order", "next", "order 4711: 3 x 12.5"),
        ("I book it.", "book", "4711", "409: the order is locked"),
        ("I book it again.", "book", "4711", "409: the order is locked"),
        ("I try it once more.", "book", "4711", "409: the order is locked"),
        ("And again.", "book", "4711", "409: the order is locked"),
        ("One more time.", "book", "4711", "409: the order is locked"),
        ("And once more.", "book", "4711", "409: the order is locked"),
    ),
    heeds=(
        ("Booking again changes nothing. I look who has locked it.", "read_lock", "4711", "locked by: worker 3"),
        ("Worker 3 may still be at it.", "read_worker", "3", "worker 3 ended an hour ago"),
        ("I release the lock.", "release", "4711", "released"),
        ("Now I book it.", "book", "4711", "booked"),
        ("I look if it is in the books.", "read_book", "4711", "4711: 37.50, booked"),
    ),
)
CODEBASE = "scripted-sample/till"
FINDINGS = (
    ("cents() in shop/prices.py reads a price that is a text, and returns whole cents.", "shop/prices.py", "location"),
    ("The tests need no service: `python -m unittest` runs all of them.", "tests/test_orders.py", "command"),
    ("settle() raises ValueError if the customer paid another sum than is due.", "shop/orders.py", "behaviour"),
    ("Prices were floats once.", "docs/history.md", "note"),
)


def main(arguments: Sequence[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    is_new = is_for_samples(arguments)
    for name in BASES:
        os.environ.pop(name, None)
    with ExitStack() as stack:
        home = os.environ["REASONBLOCKS_HOME"] = stack.enter_context(tempfile.TemporaryDirectory())
        os.environ.setdefault("REASONBLOCKS_THREADS", ask_a_person(Path(home) / "threads.db"))
        server = stack.enter_context(serve(arguments))
        stack.callback(server.terminate)
        assert server.stdout is not None
        with suppress(KeyboardInterrupt):
            if line := server.stdout.readline():
                show(stack, is_new=is_new, **json.loads(line))
            return server.wait()
    return 0


def is_for_samples(arguments: Sequence[str]) -> bool:
    """Return True for a folder of our own, or an empty one: samples are never added to other data."""
    parser = argparse.ArgumentParser(add_help=False)
    for option in ("--data", "--database-url", "--qdrant-url"):
        parser.add_argument(option)
    given, _ = parser.parse_known_args(list(arguments))
    if given.database_url or given.qdrant_url:
        return False
    return given.data is None or not Path(given.data).exists() or not any(Path(given.data).iterdir())


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
        title="Scripted sample: the installer did not find the printer's driver",
        run_id="driver-1",
        evidence=(Evidence(id="output", label="output of the last command", text=MISSING),),
    )
    proposals = [
        Proposal.of_intent("Let somebody who knows the printer install its driver.", confidence=0.9),
        Proposal.of_context("The agent has tried the same command 6 times.", confidence=0.9),
        Proposal.of_action("hand_off", {"to": "the IT desk", "reason": "no such driver"}, confidence=0.8),
    ]
    with Threads(database) as threads:
        threads.open(cause, proposals=proposals, by=Actor.agent("scripted installer"), run="ended")
        threads.drain()
    return str(database)


def show(stack: ExitStack, url: str, data: str, key: str | None, login: str | None, *, is_new: bool) -> None:
    """Fill a new server with runs, and print its address and a login link."""
    if key is not None and is_new:
        print("Streaming runs of scripted agents to the server ...", flush=True)
        people(url, key)
        finished_runs(url, key)
        ended = threading.Event()
        live = threading.Thread(target=live_runs, args=(url, key, ended))
        live.start()
        stack.callback(live.join)
        stack.callback(ended.set)
    elif not is_new:
        print("No samples: they are added only to an empty folder, and to no other database.")
    if key is not None:
        print(f"Key for runs of your own: {key}")
    print(f"Dashboard, for one login within 15 minutes: {login}")
    print(f"ReasonBlocks server: {url} (data in {data}). Ctrl-C ends it.", flush=True)


def people(url: str, key: str) -> None:
    """Do what people and agents do over the API: add a pattern, a key and findings, and change or remove some."""
    with httpx.Client(base_url=f"{url}/v1", headers={"Authorization": f"Bearer {key}"}, trust_env=False) as http:

        def ask(method: str, path: str, body: object = None, **headers: str) -> httpx.Response:
            return http.request(method, path, json=body, headers=headers).raise_for_status()

        lesson = {
            "diagnosis": "The agent books an order again and again while another worker holds its lock.",
            "intervention": "Read who holds the lock, and release it if that worker is gone. Then book once.",
            "trigger_state": {"trajectory_description": "I book the order again and get error 409: it is locked."},
        }
        pattern = {"id": "scripted-sample-lock", "tier": "e2", "failure_type": "loop", "fields": lesson}
        ask("POST", "/patterns", pattern)
        changed = {**pattern, "fields": {**lesson, "anti_pattern": "Booking again without a change."}}
        ask("PUT", f"/patterns/{pattern['id']}", changed, **{"If-Match": "1"})
        made = ask("POST", "/keys", {"name": "scripted sample: a visitor", "scopes": ["read"]}).json()
        ask("DELETE", f"/keys/{made['key_id']}")
        ask("PUT", "/org", {"retention_days": 30})
        found = [{"content": text, "file_path": path, "finding_type": kind} for text, path, kind in FINDINGS]
        ask("POST", f"/findings/{CODEBASE}", {"findings": found})
        ask("POST", f"/findings/{CODEBASE}/invalidate", {"file_paths": ["docs/history.md"]})


def finished_runs(url: str, key: str) -> None:
    """Stream runs of several agents at the same time. All decisions are made in this process."""
    driver = RunOptions(agent_name="scripted installer", task="Install the printer's driver.", model=MODEL)
    lookup = replace(driver, agent_name="scripted answerer", task="When may a customer return goods?")
    upgrade = replace(driver, agent_name="scripted upgrader", task="Raise billing to version 2.")
    names = [f"unit-{number:02}" for number in range(UNITS)]
    units = [replace(driver, run_id=name, unit_id=name, experiment_id=EXPERIMENT) for name in names]
    with ReasonBlocks(sinks=[HttpSink(url, key)], base_url="") as rb, ThreadPoolExecutor() as pool:
        for _ in pool.map(lambda n: play(rb, (EASY, HEEDS, IGNORES)[n % 3], units[n], UNIT_STEP_S), range(UNITS)):
            pass
        runs = [  # the newest, so that the list begins with them
            pool.submit(demo_run, rb, "demo-plain", "observe"),
            pool.submit(demo_run, rb, "demo-steered", "steer"),
            pool.submit(play, rb, LOOKUP, replace(lookup, run_id="lookup")),
            pool.submit(play, rb, UPGRADE, replace(upgrade, run_id="upgrade")),
            pool.submit(play, rb, IGNORES, replace(driver, run_id="driver-1")),
            pool.submit(play, rb, IGNORES, replace(driver, run_id="driver-2", mode="observe")),
            pool.submit(play, rb, HEEDS, replace(driver, run_id="driver-3")),
        ]
        for run in runs:
            run.result()


def demo_run(rb: ReasonBlocks, run_id: str, mode: Mode) -> None:
    """Run the agent of `./dev demo`. With the mode "observe", it gets no guidance and repeats itself."""
    with tempfile.TemporaryDirectory() as folder:
        root = write_to(Path(folder).resolve())
        with rb.middleware(run_id=run_id, agent_name="scripted bugfixer", task=TASK, mode=mode) as steering:
            _, at_limit = messages_of(ScriptedModel(), root, steering)
            steering.finish("success" if passing(test_report(root)) and not at_limit else "failure: tests fail")


def play(rb: ReasonBlocks, script: Script, options: RunOptions, step_s: tuple[float, float] = STEP_S) -> None:
    """Stream a run of this script, whose steps take their time."""
    outputs = []
    with rb.session(options) as session:
        for output in steps(session, script):
            outputs.append(output)
            time.sleep(random.uniform(*step_s))
        session.finish("success" if script.goal in outputs else "failure: no driver")


def live_runs(url: str, key: str, ended: threading.Event) -> None:
    """Run an agent repeatedly and slowly. The server evaluates its steps, so people can send it notes."""
    with ReasonBlocks(base_url=url, api_key=key) as rb:
        while not ended.is_set():
            with rb.session(model=MODEL, agent_name="scripted clerk", task="Book the waiting orders.") as session:
                for _ in steps(session, LIVE):
                    if ended.wait(PAUSE_S):
                        session.finish("stopped: the demo has ended")
                        break


def steps(session: SteeringSession, script: Script) -> Iterator[str]:
    """Take the steps of a script and a last one without a tool call. Yield the output of each."""
    completed, todo, heeds = None, deque(script.turns), script.heeds
    for number in count():
        decision = session.begin_step(StepInput(completed=completed, default_model=MODEL))
        if heeds and any(text.source == "MonitorSteeringInjection" for text in decision.injections):
            todo, heeds = deque(heeds), ()
        thought, tool, target, output = todo.popleft() if todo else ("That is all.", "", "", "")
        calls = (ToolCall(id=f"call-{number}", name=tool, arguments={"target": target}),) if tool else ()
        usage = Usage(input=900 + 120 * number, output=40)
        session.end_step(decision, StepOutcome(model=MODEL, text=thought, tool_calls=calls, usage=usage))
        results = tuple(
            ToolResult(call_id=call.id, output=output, is_error=output.startswith("error")) for call in calls
        )
        completed = Step(thought=thought, tool_calls=calls, tool_results=results)
        yield output
        if not calls:
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
