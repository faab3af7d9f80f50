"""The command line as a user meets it: arguments in, exit code and texts out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from reasonblocks_workbench.cli import main


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Command: TypeAlias = Callable[..., Done]
Write: TypeAlias = Callable[..., str]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """`command("replay", path)`, in this process, with none of the variables of the user or of the test runner."""
    for name in [name for name in os.environ if name.startswith("REASONBLOCKS_")]:
        monkeypatch.delenv(name)

    def run(*argv: str) -> Done:
        code = main(argv)
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write("a.jsonl", record, ...)`: one line a record, texts as they are."""

    def lines(name: str, *records: object) -> str:
        path = tmp_path / name
        texts = [record if isinstance(record, str) else json.dumps(record) for record in records]
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        return str(path)

    return lines
