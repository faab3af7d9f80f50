"""A file of patterns that cannot be used: nothing waits for it, one line says so, the library's lessons are found."""

from __future__ import annotations

import logging
import os
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from reasonblocks import LocalStore, ReasonBlocks
from reasonblocks.exceptions import StoreError
from reasonblocks.types import Pattern
from tests.core.stores.test_local_file import as_nobody
from tests.core.world import run

RULE = Pattern(id="own-rule", tier="e3", fields={"instruction": "Say less."})
pytestmark = pytest.mark.skipif(os.name == "nt", reason="this system has no such files")


@pytest.fixture
def home(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for the patterns of a client."""
    monkeypatch.setenv("REASONBLOCKS_HOME", str(shared))
    return shared


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_unreadable(path: Path) -> None:
    LocalStore(path, patterns=[RULE]).close()
    path.chmod(0)


def make_garbage(path: Path) -> None:
    path.write_bytes(b"not a database at all, " * 400)


def make_short(path: Path) -> None:
    LocalStore(path, patterns=[RULE]).close()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_foreign(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE runs (id)")
    db.close()


def make_pipe_of_the_log(path: Path) -> None:
    LocalStore(path, patterns=[RULE]).close()
    os.mkfifo(f"{path}-wal")


UNUSABLE: dict[str, Callable[[Path], None]] = {
    "pipe": make_pipe, "folder": Path.mkdir, "device": make_device, "socket": make_socket,
    "unreadable": make_unreadable, "garbage": make_garbage, "short": make_short, "foreign": make_foreign,
    "pipe of the log": make_pipe_of_the_log,
}  # fmt: skip
unusable = pytest.mark.parametrize("kind", UNUSABLE)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """All that the log shows, tracebacks included."""
    return [line for record in caplog.records for line in logging.Formatter().format(record).splitlines()]


def steered(caplog: pytest.LogCaptureFixture) -> tuple[str, ...]:
    """Ids of what the first call of a client is shown, which opens and closes without waiting."""
    shown: list[str] = []

    def work() -> None:
        with as_nobody(), ReasonBlocks(strict=False) as rb, rb.session() as session:
            run(session, 3)
            shown.extend(session.step_log[0].pattern_ids)

    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    return tuple(shown)


@unusable
def test_an_unusable_file_is_said_in_one_line_and_the_librarys_lessons_are_found(
    kind: str, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    UNUSABLE[kind](home / "patterns.db")
    shown = steered(caplog)
    assert (len(shown) > 0, RULE.id in shown) == (True, False)
    assert [line.count("patterns.db") > 0 for line in lines(caplog)] == [True]


@unusable
def test_a_store_of_an_unusable_file_raises_and_does_not_wait(kind: str, home: Path) -> None:
    UNUSABLE[kind](home / "patterns.db")
    with as_nobody(), LocalStore(home / "patterns.db") as store, pytest.raises(StoreError, match=r"patterns\.db"):
        len(store)


def test_a_link_that_leads_nowhere_reads_as_empty(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    (home / "patterns.db").symlink_to(home / "missing" / "patterns.db")
    assert (len(steered(caplog)) > 0, lines(caplog)) == (True, [])


@pytest.mark.parametrize("folder_mode", [0o555, 0o755])
def test_a_file_that_cannot_be_written_is_read_and_said_in_one_line(
    folder_mode: int, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    LocalStore(home / "patterns.db", patterns=[RULE]).close()
    (home / "patterns.db").chmod(0o444)
    home.chmod(folder_mode)
    assert RULE.id in steered(caplog)
    assert len(lines(caplog)) == 1
    assert "PatternStats failed (StoreError: the store" in lines(caplog)[0]


def test_a_folder_in_which_the_log_cannot_be_made_is_no_hindrance_to_reading(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    LocalStore(home / "patterns.db", patterns=[RULE]).close()
    (home / "patterns.db").chmod(0o666)
    home.chmod(0o555)
    assert RULE.id in steered(caplog)
    assert len(lines(caplog)) <= 1
