"""Starts `reasonblocks serve` as a process of its own, as an operator does."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

END_S = 15.0
"""Seconds that a server may take to end on a busy machine; 5 of them are the workers'."""


EVENTUALLY_S = 60.0
"""Seconds in which a client delivers what it has kept while there was no server; it waits longer each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server, and its first key with all scopes; None if an earlier start has created it."""

    process: subprocess.Popen[str]
    url: str
    key: str | None
    login: str | None

    def ask(self, path: str, body: object = None, *, key: str | None = None) -> tuple[int, Any]:
        """Return the status and the JSON of the answer, to a POST if there is a body."""
        headers = {"Authorization": f"Bearer {key or self.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"null")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the server, and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(END_S)

    def workers(self) -> list[int]:
        """Return the ids of the worker processes."""
        return [child for child in children(self.process.pid) if "resource_tracker" not in command_of(child)]


def children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    return [int(number) for number in listed.split()]


def command_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


@contextmanager
def ended(process: int) -> Iterator[Callable[[], bool]]:
    """Yield a function that waits for the end of a process, and returns False if it goes on."""
    with os.fdopen(os.pidfd_open(process), "rb") as ends:
        yield lambda: bool(select.select([ends], [], [], END_S)[0])


def kill(process: int) -> None:
    """Kill a process, and return when it is gone."""
    with ended(process) as gone:
        os.kill(process, signal.SIGKILL)
        assert gone()


def eventually(probe: Callable[[], bool]) -> bool:
    """Ask repeatedly, until the answer is yes or the time is over. Return the last answer."""
    until = time.monotonic() + EVENTUALLY_S
    while not (answer := probe()) and time.monotonic() < until:
        time.sleep(0.1)
    return answer


def environment(home: Path, **variables: str) -> Mapping[str, str]:
    """Return the variables of a server, without those of the tests' own user."""
    ours = ("REASONBLOCKS_", "QDRANT_", "RATE_LIMIT_", "MAX_BODY_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "REASONBLOCKS_HOME": str(home), "PYTHONUNBUFFERED": "1", **variables}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "reasonblocks", *arguments]


@contextmanager
def served(home: Path, *arguments: str, key: str | None = None, **variables: str) -> Iterator[Served]:
    """Run a server on a free port of loopback until the block ends. `key` is that of an earlier start."""
    with subprocess.Popen(
        command("serve", "--port", "0", "--json", *arguments),
        env=environment(home, **variables), stdout=subprocess.PIPE, stderr=sys.stderr, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, f"the server has ended with {process.wait(END_S)}"
            told = json.loads(line)
            yield Served(process=process, url=told["url"], key=told["key"] or key, login=told["login"])
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(END_S)
