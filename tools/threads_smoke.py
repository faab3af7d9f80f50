"""Checks installed threads: `./dev wheel` runs this where only the core and the threads are installed.

An agent's process proposes an action, a person approves it with the command in another process, and the action runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from reasonblocks_threads import Action, Cause, Execution, Phase, Proposal, Report, Risk, Threads


class Deploy(BaseModel):
    service: str


def main() -> None:
    done: list[str] = []

    def deploy(parameters: Deploy, execution: Execution) -> Report:
        done.append(parameters.service)
        return Report.ok(f"{parameters.service} is deployed")

    action = Action("deploy", Deploy, deploy, risk=Risk(amplifiers=frozenset({"external_effect"})))
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "threads.db")
        with Threads(file, actions=[action]) as threads:
            cause = Cause(kind="proposal", key="deploy web", title="Deploy web?")
            thread = threads.open(cause, proposals=[Proposal.of_action("deploy", {"service": "web"}, confidence=0.9)])
            threads.drain()
            (listed,) = command(file, "list")
            assert listed["id"] == thread.id, listed
            command(file, "answer", listed["card"], "approve", "--by", "mara")
            assert done == [], "a process without the action ran it"
            threads.drain()
            thread = threads.get(thread.id)
        assert (done, thread.phase, thread.reason) == (["web"], Phase.DONE, "web is deployed"), (done, thread)
    print("the threads work")


def command(file: str, *arguments: str) -> list[dict[str, Any]]:
    """Run `reasonblocks-threads` and return the objects that it prints."""
    program = str(Path(sys.executable).with_name("reasonblocks-threads"))
    call = [program, "--db", file, "--json", *arguments]
    ran = subprocess.run(call, capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in ran.stdout.splitlines()]


if __name__ == "__main__":
    main()
