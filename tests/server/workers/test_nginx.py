"""Two servers behind nginx, with the configuration of deploy/: streams are not delayed, and one server may die."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.server.serving import END_S, Served, kill, served
from tests.server.workers.clients import (
    BATCH,
    BATCHES,
    STEPS,
    alone,
    client,
    decided,
    indices,
    step_event,
    stream_all,
    take,
)
from tests.whole import in_whole

ROOT = Path(__file__).parents[3]
NGINX = shutil.which("nginx")
pytestmark = [in_whole, pytest.mark.skipif(NGINX is None, reason="nginx is not installed")]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Served]]:
    """Two servers with one data folder."""
    home = tmp_path_factory.mktemp("home")
    with served(home) as one, served(home, key=one.key) as two:
        yield one, two


@pytest.fixture(scope="module")
def balanced(servers: tuple[Served, Served], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The two servers by the address of an nginx in front of them."""
    folder = tmp_path_factory.mktemp("nginx")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    one, two = (server.url.removeprefix("http://") for server in servers)
    text = (ROOT / "deploy/nginx.conf").read_text(encoding="utf-8")
    text = (
        text.replace("server-1:8700", one)
        .replace("server-2:8700", two)
        .replace("listen 80", f"listen 127.0.0.1:{port}")
    )
    paths = "".join(f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    path = folder / "nginx.conf"
    path.write_text(text.replace("http {", f"http {{ {paths}"), encoding="utf-8")
    command = [str(NGINX), "-p", str(folder), "-c", str(path), "-e", "stderr", "-g", f"pid {folder}/pid; daemon off;"]
    subprocess.run([*command, "-t", "-q"], check=True)
    with subprocess.Popen(command) as process:
        try:
            wait_for(port)
            yield replace(servers[0], url=f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(END_S)


def wait_for(port: int) -> None:
    until = time.monotonic() + END_S
    while time.monotonic() < until:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise TimeoutError(f"nothing listens on {port}")


def test_an_event_arrives_through_the_stream_at_once(balanced: Served) -> None:
    headers = {"Authorization": f"Bearer {balanced.key}"}
    request = urllib.request.Request(f"{balanced.url}/v1/monitor/stream", headers=headers)
    with closing(urllib.request.urlopen(request, timeout=30)) as stream:
        assert stream.readline().startswith(b"retry:")
        begun = time.monotonic()
        assert balanced.ask("/monitor/events", {"events": [step_event("streamed", 0)]})[0] == 200
        while not re.match(rb'data:.*"streamed"', stream.readline()):
            pass
        assert time.monotonic() - begun < 5  # buffered, it would wait for 4 or 8 KB


def test_clients_continue_when_a_server_is_killed(balanced: Served, servers: tuple[Served, Served]) -> None:
    threads = [threading.Thread(target=stream_all, args=(balanced, name)) for name in ("behind-1", "behind-2")]
    with client(balanced) as rb, rb.session(run_id="behind", task="Fix the tests.") as session:
        completed = None
        for number in range(STEPS):
            if number == STEPS // 3:
                for thread in threads:
                    thread.start()
            if number == STEPS // 2:
                workers = servers[1].workers()
                kill(servers[1].process.pid)
                for worker in workers:
                    kill(worker)
            completed = take(session, number, completed)
        assert decided(session) == alone()
    for thread in threads:
        thread.join()
    assert [indices(balanced, name) for name in ("behind-1", "behind-2")] == [list(range(BATCHES * BATCH))] * 2
