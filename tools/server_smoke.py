"""Checks an installed server: `./dev wheel` runs this where only the core and the server are installed.

`reasonblocks serve` starts on an empty folder, a scripted run is sent to it and read back, its dashboard asks for a
login, and SIGTERM ends it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from reasonblocks import ReasonBlocks, Step, StepInput, StepOutcome, ToolCall, ToolResult
from reasonblocks.events import Event

END_S = 15


class Collected:
    """A sink that keeps the events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass


def main() -> None:
    events = scripted_events()
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
        [str(Path(sys.executable).with_name("reasonblocks")), "serve", "--port", "0", "--data", folder, "--json"],
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            server = json.loads(process.stdout.readline())
            url, key = server["url"], server["key"]
            answer = ask(f"{url}/monitor/events", key, {"events": [event.as_dict() for event in events]})
            assert (answer["accepted"], answer["refused"]) == (len(events), []), answer
            run = ask(f"{url}/monitor/runs/run-1", key)["run"]
            assert (run["outcome"], run["steps"]) == ("failure: no fix found", 4), run
            with urllib.request.urlopen(f"{url}/ui/", timeout=10) as page:
                assert "text/html" in page.headers["Content-Type"]
        finally:
            process.terminate()
            ended = process.wait(END_S)
    assert ended == 0, ended
    print("the server works")


def scripted_events() -> list[Event]:
    sink = Collected()
    with ReasonBlocks(sinks=[sink], strict=True) as rb, rb.session(run_id="run-1", task="Fix the tests.") as session:
        decision = session.begin_step(StepInput())
        for number in range(3):
            session.end_step(decision, StepOutcome(model="some-model"))
            call = ToolCall(id=f"call-{number}", name="run_tests")
            result = ToolResult(call_id=call.id, output="3 failed")
            completed = Step(thought="I run the tests again.", tool_calls=(call,), tool_results=(result,))
            decision = session.begin_step(StepInput(completed=completed))
        session.end_step(decision, StepOutcome(model="some-model", text="I find no fix."))
        session.finish("failure: no fix found")
    return sink.events


def ask(url: str, key: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=10) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
