"""`./dev serve`: the server with sample runs prints a login link, and ends with the process that has started it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def check_samples(http: httpx.Client) -> None:
    """Check that the samples show an effect, and that their names say that they are scripted."""

    def get(path: str) -> Any:
        return http.get(path).raise_for_status().json()

    runs = get("/monitor/runs?limit=200")["runs"]
    assert all(run["agent_name"].startswith("scripted ") for run in runs)
    health = get("/monitor/health-summary")
    assert health["monitors"]["semantic_loop"] > 1
    assert health["recovered"]["loop"][0] > 1
    (experiment,) = get("/monitor/experiments")["experiments"]
    assert experiment["experiment_id"].startswith("scripted-")
    report = get(f"/monitor/experiments/{experiment['experiment_id']}/report")
    assert report["verdict"] == "better"
    assert min(report[arm]["known"] for arm in ("on", "off")) >= 30
    assert 0 < report["off"]["success"]["value"] < report["on"]["success"]["value"] < 1
    (codebase,) = get("/findings")["codebases"]
    assert codebase["codebase_id"].startswith("scripted-")
    assert codebase["findings"] > 1
    assert len(get("/keys")["keys"]) == 2
    assert any(pattern["id"].startswith("scripted-") for pattern in get("/patterns")["patterns"])


@contextmanager
def sample_server(*command: str) -> Iterator[tuple[subprocess.Popen[str], str, str, str]]:
    """Start the script. Yield its process, what it has printed, the server's address and a key; end it at last."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            printed = "".join([line for _, line in zip(range(4), process.stdout)])
            (key,) = re.findall(r"^Key for runs of your own: (\S+)$", printed, re.MULTILINE)
            (url,) = re.findall(r"^ReasonBlocks server: (\S+) ", printed, re.MULTILINE)
            yield process, printed, url, key
        finally:
            process.terminate()


@in_whole
def test_the_samples_are_not_added_to_other_data(tmp_path: Path) -> None:
    pytest.importorskip("reasonblocks_langchain", reason="the script runs a LangChain agent")
    (tmp_path / "notes.txt").write_text("not ours")
    with sample_server(sys.executable, os.fspath(SAMPLE), "--port", "0", "--data", os.fspath(tmp_path)) as started:
        _, printed, url, key = started
        assert printed.startswith("No samples")
        assert httpx.get(f"{url}/v1/monitor/runs", headers=bearer(key)).json()["runs"] == []


@in_whole
def test_the_sample_server_shows_runs_and_ends_with_its_parent() -> None:
    pytest.importorskip("reasonblocks_langchain", reason="two of the sample runs are of a LangChain agent")
    with sample_server(sys.executable, "-c", PARENT, os.fspath(SAMPLE), "--port", "0") as (parent, _, url, key):
        with httpx.Client(base_url=f"{url}/v1", headers=bearer(key)) as http:
            check_samples(http)
        parent.send_signal(signal.SIGKILL)
    ends = time.monotonic() + SECONDS
    while is_listening(url):
        assert time.monotonic() < ends, "the server outlives the process that has started it"
        time.sleep(0.2)
