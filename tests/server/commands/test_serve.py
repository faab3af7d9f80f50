"""`reasonblocks serve` reports a mistake in one line, starts without preparation, and ends within seconds."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.server.running import stored
from tests.server.serving import END_S, Served, command, environment, served
from tests.workbench.cli.conftest import Command
from tests.workbench.cli.test_terminal import EVIL, obeyed

RUN = {"event": "run_start", "timestamp": 1.0, "run_id": "run-1", "agent_name": "a", "task": "t"}


# --- without a worker: mistakes


@pytest.fixture
def serve(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`serve("--port", "1", ...)`, on a data folder of the test; only for calls that fail before there is a worker."""
    for name in ("REASONBLOCKS_DATABASE_URL", "REASONBLOCKS_THREADS", "REASONBLOCKS_WORKERS", "QDRANT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REASONBLOCKS_DATA", str(tmp_path))
    return lambda *argv: command("serve", *argv)


def newer(folder: Path) -> None:
    """Make a data folder that a newer version has written."""
    with stored(folder) as storage, storage._db.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))


@pytest.mark.parametrize(
    ("argv", "code", "reason"),
    [
        (["--port", "8x"], 2, "'--port': '8x' is not a whole number"),
        (["--port", "70000"], 1, "cannot listen on 127.0.0.1 port 70000"),
        (["--host", "192.0.2.1"], 1, "cannot listen on 192.0.2.1 port 8700: "),
        (["--workers", "0"], 2, "workers=0: must be a number from 1 to 64"),
        (["--data", "/dev/null/data"], 1, "cannot write to /dev/null/data: not a directory; --data names another"),
        (["--port", "0", "--database-url", "mysql://u:secret@127.0.0.1/x"], 2, "must be sqlite:///PATH or postgresql"),
        (["--port", "0", "--database-url", "postgresql://u:secret@127.0.0.1:9/x"], 1, "the database is not available"),
        (["--qdrant-url", f"ftp://{EVIL}"], 2, "must be an http or https URL"),
        (["--threads", "http://u:secret@127.0.0.1/"], 2, "threads_url='http:...': must be a path or postgresql://"),
        (
            ["--port", "0", "--threads", "/dev/null/no/threads.db"],
            2,
            "threads_url='/dev/null/no/threads.db': does not exist; give the file that your agents' `Threads` use",
        ),
        (["--port", "0", "--threads", "postgresql://u:secret@127.0.0.1:9/x"], 1, "store is not available"),
        (["--public-url", f"runs.example.org{EVIL}"], 2, "--public-url: must be an http or https URL"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(serve: Command, argv: list[str], code: int, reason: str) -> None:
    done = serve(*argv)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert reason in done.err
    assert "secret" not in done.err
    assert obeyed(done.err) == []


def test_a_port_in_use_is_named(serve: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = serve("--port", port)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"reasonblocks: cannot listen on 127.0.0.1 port {port}: address already in use\n"


def test_a_database_of_a_newer_version_is_left_alone(serve: Command, tmp_path: Path) -> None:
    newer(tmp_path)
    done = serve("--port", "0")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "which a newer version wrote: upgrade reasonblocks-server" in done.err


@pytest.mark.parametrize(
    ("module", "argv", "problem"),
    [
        (
            "psycopg", ["--database-url", "postgresql://127.0.0.1/x"],
            "PostgreSQL needs psycopg: pip install 'psycopg[binary]>=3.2.1'",
        ),
        (
            "qdrant_client", ["--qdrant-url", "http://127.0.0.1:9"],
            "QdrantStore needs qdrant-client: pip install 'httpx[http2]>=0.27' 'qdrant-client>=1.12'",
        ),
    ],
    ids=["postgres", "qdrant"],
)  # fmt: skip
def test_a_missing_driver_is_named_with_the_command_that_installs_it(
    tmp_path: Path, module: str, argv: list[str], problem: str
) -> None:
    run = "from reasonblocks_workbench.cli import main; sys.exit(main(sys.argv[1:]))"
    code = f"import sys; sys.modules[{module!r}] = None; {run}"
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", "--port", "0", *argv],
        env=environment(tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"reasonblocks: {problem}\n"


def test_the_list_of_commands_imports_no_web_framework_and_no_database() -> None:
    heavy = {"fastapi", "starlette", "uvicorn", "sqlalchemy", "alembic"}
    run = "from reasonblocks_workbench.cli import main; main(['--help'])"
    code = f"import sys; {run}; print({heavy!r} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "serve" in done.stdout
    assert done.stdout.splitlines()[-1] == "set()"


# --- with workers


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def first(home: Path) -> Iterator[Served]:
    """The first server on an empty home folder."""
    with served(home) as server:
        yield server


def test_the_first_start_needs_no_preparation_and_creates_a_key_with_all_scopes(first: Served, home: Path) -> None:
    assert first.key is not None
    assert first.ask("/health")[0] == 200
    assert first.ask("/monitor/events", {"events": [RUN]})[1]["accepted"] == 1
    assert [run["run_id"] for run in first.ask("/monitor/runs")[1]["runs"]] == ["run-1"]
    assert first.ask("/keys")[0] == 200
    assert (home / "server/server.db").exists()


def test_the_login_link_leads_to_a_page_of_this_server(first: Served) -> None:
    assert first.login is not None
    assert first.login.startswith(f"{first.url}/ui/link/")
    with urllib.request.urlopen(first.login, timeout=30) as page:
        assert page.headers["Content-Type"].startswith("text/html")
        assert b"<button" in page.read()


def test_a_key_that_is_created_while_the_server_runs_works_at_once(first: Served, home: Path) -> None:
    done = subprocess.run(
        command("keys", "create", "--name", "ci", "--scopes", "read"),
        env=environment(home), capture_output=True, text=True, check=True,
    )  # fmt: skip
    key = done.stdout.strip()
    assert first.ask("/monitor/runs", key=key)[0] == 200
    assert first.ask("/monitor/events", {"events": [RUN]}, key=key)[0] == 403


def test_it_ends_within_seconds_with_an_open_stream(first: Served) -> None:
    request = urllib.request.Request(f"{first.url}/monitor/stream", headers={"Authorization": f"Bearer {first.key}"})
    with closing(urllib.request.urlopen(request, timeout=30)) as stream:
        assert stream.readline().startswith(b"retry:")
        begun = time.monotonic()
        assert first.stop() == 0
        assert time.monotonic() - begun < END_S
