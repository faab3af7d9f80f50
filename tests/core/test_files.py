"""A file beside an SQLite file may vanish at any time."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import pytest

from reasonblocks.util.files import regular_or_missing

LOOKS = 5_000


def test_a_file_that_vanishes_meanwhile_is_skipped(tmp_path: Path) -> None:
    journal, over = tmp_path / "runs.db-journal", threading.Event()

    def comes_and_goes() -> None:
        while not over.is_set():
            journal.touch()
            with suppress(FileNotFoundError):
                journal.unlink()

    thread = threading.Thread(target=comes_and_goes)
    thread.start()
    try:
        for _ in range(LOOKS):
            regular_or_missing(str(journal))
    finally:
        over.set()
        thread.join()


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    regular_or_missing(str(tmp_path / "missing"), "\0")
    with pytest.raises(IsADirectoryError):
        regular_or_missing(str(tmp_path / "missing"), str(tmp_path))
