"""Files of recorded runs, written for one test."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from reasonblocks.exceptions import RecordError
from reasonblocks_workbench.traces import RecordedRun, read_runs

Write: TypeAlias = Callable[..., str]
FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write("a.jsonl", value, ...)`: one line a value, bytes and text as they are; `packed=True` for gzip."""

    def lines(name: str, *values: object, packed: bool = False) -> str:
        data = b"".join(_line(value) for value in values)
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if packed else data)
        return str(path)

    return lines


def _line(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode() + b"\n"


def runs(path: object) -> list[RecordedRun]:
    """The runs of a file that has no error."""
    found = list(read_runs(str(path)))
    assert [item for item in found if isinstance(item, RecordError)] == []
    return [item for item in found if isinstance(item, RecordedRun)]


def only(path: object) -> RecordedRun:
    (run,) = runs(path)
    return run


def fault(path: object) -> RecordError:
    """The error that is all that a file gives."""
    (item,) = read_runs(str(path))
    assert isinstance(item, RecordError)
    return item
