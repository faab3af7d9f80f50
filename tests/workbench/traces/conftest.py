"""Files of recorded runs, written for one test."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

Write: TypeAlias = Callable[..., str]


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
