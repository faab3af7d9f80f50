"""Runs the real server, `reasonblocks serve`, in separate processes on 127.0.0.1, for a benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

END_S = 20.0
"""Seconds that the server may take to end."""
UNLIMITED = {"RATE_LIMIT_PER_SEC": "1000000", "RATE_LIMIT_BURST": "1000000"}
SERVE = """
import argparse, sys
from reasonblocks_server.commands import add_serve
parser = argparse.ArgumentParser()
add_serve(parser.add_subparsers())
given = parser.parse_args(["serve", *sys.argv[1:]])
if __name__ == "__main__":
    sys.exit(given.command(given))
"""
"""The command without its entry point, which is missing if the package is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A running server, the key of the org "default" with all scopes, and the id of its parent process."""

    url: str
    key: str
    process: int


@contextmanager
def serving(data: Path, *, workers: int = 1, database_url: str | None = None) -> Iterator[Serving]:
    """Run a server with its files in a new folder, without limits of requests, until the block ends."""
    ours = ("REASONBLOCKS_", "QDRANT_", "RATE_LIMIT_", "MAX_BODY_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    arguments = ["--port", "0", "--json", "--data", str(data), "--workers", str(workers)]
    if database_url is not None:
        environment["REASONBLOCKS_DATABASE_URL"] = database_url
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, *arguments],
        env={**environment, **UNLIMITED, "REASONBLOCKS_HOME": str(data)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the server has ended with {process.wait(END_S)}")
            told = json.loads(line)
            yield Serving(url=told["url"], key=told["key"], process=process.pid)
        finally:
            process.terminate()
            process.wait(END_S)
