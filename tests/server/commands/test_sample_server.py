"""`./dev serve`: the server with sample runs prints a login link, and ends with the process that has started it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.whole import in_whole

SAMPLE = Path(__file__).parents[3] / "examples/team_server.py"
SECONDS = 60.0
PARENT = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"


def is_listening(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


@in_whole
def test_the_sample_server_shows_runs_and_ends_with_its_parent() -> None:
    pytest.importorskip("reasonblocks_langchain", reason="two of the sample runs are of a LangChain agent")
    command = [sys.executable, "-c", PARENT, os.fspath(SAMPLE), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        lines = [line for _, line in zip(range(4), parent.stdout)]
        (key,) = re.findall(r"^Key for runs of your own: (\S+)$", "".join(lines), re.MULTILINE)
        (url,) = re.findall(r"^ReasonBlocks server: (\S+) ", "".join(lines), re.MULTILINE)
        runs = httpx.get(f"{url}/v1/monitor/runs", headers={"Authorization": f"Bearer {key}"}).json()["runs"]
        assert len(runs) > 10
        parent.send_signal(signal.SIGKILL)
    ends = time.monotonic() + SECONDS
    while is_listening(url):
        assert time.monotonic() < ends, "the server outlives the process that has started it"
        time.sleep(0.2)
