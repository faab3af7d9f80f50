"""Measures the cost of a failing server: time a step, decisions, the event loop, the end of the process, and events.

Each row is one agent in a process of its own, and a scripted rb-api in another, both on this machine. The server is
fine for the first 10 steps of the run, and has its fault from then on; only the steps with the fault are measured.
`p50 ms` and `max ms` are the whole of `begin_step` and `end_step`; the row "embedded" is the same run without a server.
`gap ms` is the longest time in which the agent's event loop ran nothing else, `idle ms` that of the idle loop in the
same number of seconds after it, and `exit s` the time from the end of the program to that of its process, with the
telemetry of the run still to be sent.

Two more tables: 10,000 events against a dead server, and the bytes of a run of 1,000 steps.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from _faults_client import MARK
from step_cost import Script

from reasonblocks import ReasonBlocks, StepInput
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks_testing.rb_api import KEY, LIES, Drip, Fault, Hang, HangUp, Lying, ScriptedRbApi, Slow, Status

CLIENT = Path(__file__).with_name("_faults_client.py")
STEPS = 30
EVENTS = 10_000
LONG_STEPS = 1_000
COLUMNS = {
    "fault": 22, "mode": 8, "p50 ms": 9, "max ms": 9, "gap ms": 8, "idle ms": 9, "exit s": 8, "lines": 7, "gates": 60,
}  # fmt: skip

Act = Callable[[ScriptedRbApi], object]


def having(fault: Fault) -> Act:
    return lambda api: api.misbehave(fault)


ACTS: Mapping[str, Act] = {
    "fine": lambda api: api.behave(),
    "dead port": lambda api: api.close_port(),
    "slow, 0.2 s": having(Slow(seconds=0.2)),
    "slow, 3 s": having(Slow(seconds=3)),
    "dripping": having(Drip(seconds=0.05)),
    "hanging": having(Hang()),
    "hanging up": having(HangUp()),
    "429": having(Status(code=429, headers={"Retry-After": "1"})),
    "503": having(Status(code=503)),
    "key revoked (401)": lambda api: api.revoke(),
    "restarted": lambda api: api.restart(),
    **{f"lying: {lie}": having(Lying(lie=lie)) for lie in LIES},
}
"""The faults, by their names in the table."""


# --- the server, in a process of its own


def serve() -> None:
    """Serve until the input ends; each line names a fault, or is "open"."""
    with ScriptedRbApi(patterns=starter_patterns()) as api:
        print(api.url, flush=True)
        for line in sys.stdin:
            name = line.strip()
            if name == "open":
                api.open_port()
            elif name == "kinds":
                kinds = [event["event"] for event in api.events]
                print(json.dumps({kind: kinds.count(kind) for kind in sorted({*kinds})}), flush=True)
                continue
            else:
                ACTS[name](api)
            print("done", flush=True)


@dataclass
class Server:
    """A scripted rb-api in another process."""

    process: subprocess.Popen[str]
    url: str

    @classmethod
    def start(cls) -> Server:
        process = started([sys.executable, __file__, "--serve"])
        return cls(process, line_of(process))

    def tell(self, name: str) -> str:
        say(self.process, name)
        return line_of(self.process)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait(30)


def started(command: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def say(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{text}\n")
    process.stdin.flush()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


# --- the agents


def agent(task: Mapping[str, object], at_half: Callable[[], object]) -> dict[str, Any]:
    """Run an agent's process, and return its figures with the seconds that it needed to exit."""
    process = started([sys.executable, "-W", "ignore", str(CLIENT)])
    say(process, json.dumps(task))
    assert line_of(process) == "half"
    at_half()
    say(process, "go")
    figures: dict[str, Any] = json.loads(line_of(process))
    process.wait(60)
    exit_s = round(time.time() - figures.pop("ended"), 2)
    assert process.stderr is not None
    lines = [line for line in process.stderr.read().splitlines() if line.startswith(MARK)]
    return {**figures, "exit_s": exit_s, "said": len(lines), "lines": lines}


def row(name: str, mode: str, steps: int) -> dict[str, Any]:
    """One fault in one mode; the name "embedded" is no server at all."""
    if name == "embedded":
        figures = agent({"mode": mode, "url": "", "key": "", "count": steps}, lambda: None)
    else:
        with Server.start() as server:
            task = {"mode": mode, "url": server.url, "key": KEY, "count": steps}
            figures = agent(task, partial(server.tell, name))
    return {"table": "faults", "fault": name, "mode": mode, **figures}


def many_events(count: int) -> Iterator[dict[str, Any]]:
    """Events against a dead server, which stays dead, and which comes back."""
    for back in (False, True):
        with Server.start() as server:
            server.tell("dead port")
            task = {"mode": "events", "url": server.url, "key": KEY, "count": count}
            figures = agent(task, partial(server.tell, "open" if back else "dead port"))
            kinds = json.loads(server.tell("kinds"))
        yield {"table": "events", "server": "back again" if back else "dead", **figures, "received": kinds}


def long_run(steps: int) -> Iterator[dict[str, Any]]:
    """The bytes of a long run by route, with the whole request and the whole answer."""
    with (
        ScriptedRbApi(patterns=starter_patterns()) as api,
        ReasonBlocks(base_url=api.url, api_key=api.key) as rb,
    ):
        script, completed = Script(), None
        session = rb.session(task="Find out why the parser fails for an empty list and fix it.")
        for _ in range(steps):
            given = StepInput(key=f"key-{script.step}", completed=completed, default_model="bench")
            completed, outcome = script.next()
            session.end_step(session.begin_step(given), outcome)
        session.finish(completed=completed)
        rb.close(10)
        for path in sorted({request.path for request in api.requests}):
            found = [request for request in api.requests if request.path == path]
            up, down = sum(request.up for request in found), sum(request.down for request in found)
            yield {"table": "bytes", "steps": steps, "route": path, "requests": len(found), "up": up, "down": down}


# --- the tables


def shown(found: Mapping[str, Any]) -> str:
    if found["table"] != "faults":
        return json.dumps({name: value for name, value in found.items() if name not in ("table", "lines")})
    gates = ", ".join(f"{gate} {count}" for gate, count in sorted(found["gates"].items()))
    loop = (found.get("gap_ms", ""), found.get("idle_gap_ms", ""))
    values = (
        found["fault"], found["mode"], found["p50_ms"], found["max_ms"], *loop, found["exit_s"], found["said"], gates
    )  # fmt: skip
    return "".join(f"{value!s:<{width}}" for value, width in zip(values, COLUMNS.values(), strict=True))


def tables(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    names = [name for name in ("embedded", *ACTS) if not given.only or given.only in name]
    for name in names:
        for mode in ("sync", "async"):
            yield row(name, mode, given.steps)
    if given.only in (None, "events"):
        yield from many_events(given.events)
    if given.only in (None, "bytes"):
        yield from long_run(given.long_steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.add_argument("--only", help="only the faults whose names contain this, or the table events or bytes")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"measured steps of each agent (default {STEPS})")
    parser.add_argument("--events", type=int, default=EVENTS, help=f"events for the dead server (default {EVENTS})")
    parser.add_argument("--long-steps", type=int, default=LONG_STEPS, help=f"steps of the long run ({LONG_STEPS})")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    if not given.json:
        print("".join(f"{name:<{width}}" for name, width in COLUMNS.items()))
    for found in tables(given):
        print(json.dumps(found) if given.json else shown(found), flush=True)


if __name__ == "__main__":
    main()
