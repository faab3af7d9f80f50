"""Starts a PostgreSQL server for tests, on a socket in its own folder. Its data survives everything but a power cut.

It needs the programs `initdb` and `postgres`. PostgreSQL refuses to run as root: then it runs as the user `postgres`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

SECONDS = 30.0
"""Within which it starts, and stops."""
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "100",
    "autovacuum": "off",
}
USER = "postgres"


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs, the newest version's; None without any."""
    on_path = shutil.which("postgres")
    if on_path is not None and shutil.which("initdb", path=os.path.dirname(on_path)):
        return Path(on_path).parent
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda path: [int(part) for part in path.parent.name.split(".")], default=None)


def why_not() -> str | None:
    """Return the reason why no server can be started here; None if one can."""
    if sys.platform == "win32" or programs() is None:
        return "there are no PostgreSQL programs, in PATH or /usr/lib/postgresql/*/bin"
    if os.geteuid() == 0 and USER not in [user.pw_name for user in pwd.getpwall()]:
        return f"PostgreSQL refuses to run as root, and there is no user {USER!r}"
    return None


class Postgres:
    """A server that can be stopped and started again. It ends with this process, even if that is killed."""

    def __init__(self, **settings: str) -> None:
        """`settings` are PostgreSQL's own, in place of those here."""
        self._settings = {**SETTINGS, **settings}
        found = programs()
        assert found is not None, why_not()
        self._programs = found
        self._folder = Path(tempfile.mkdtemp(prefix="rb-pg-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            shutil.chown(self._folder, USER, USER)
            self._as = {"user": USER, "group": USER, "extra_groups": []}
        initdb = [found / "initdb", "-N", "--no-instructions", "-A", "trust", "-U", USER]
        self._run([*initdb, "--locale", "C.UTF-8", "-E", "UTF8", "-D", self._folder / "data"])

    def __enter__(self) -> Postgres:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the server, and return when it answers."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        program, data = os.fspath(self._programs / "postgres"), os.fspath(self._folder / "data")
        command = [*_ends_with_parent(), program, "-D", data, "-k", os.fspath(self._folder), *options]
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **self._as
        )
        self._process = process
        ends = time.monotonic() + SECONDS
        while True:
            try:
                psycopg.connect(self._conninfo("postgres")).close()
            except psycopg.OperationalError:
                if time.monotonic() > ends or process.poll() is not None:
                    raise
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """Stop the server at once; its connections are cut. The data stays."""
        process, self._process = self._process, None
        if process is not None:
            if process.poll() is None:
                process.send_signal(signal.SIGQUIT)
            process.wait(SECONDS)

    def close(self) -> None:
        """Stop the server, and delete its data."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def new_database(self) -> str:
        """Return the URL of a new, empty database."""
        self._databases += 1
        name = f"test{self._databases}"
        with psycopg.connect(self._conninfo("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        return f"postgresql://{USER}@/{name}?host={self._folder}"

    def _conninfo(self, database: str) -> str:
        return f"host={self._folder} user={USER} dbname={database}"

    def _run(self, command: list[Any]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **self._as)
        assert done.returncode == 0, done.stderr


def _ends_with_parent() -> list[str]:
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "QUIT"] if setpriv else []
