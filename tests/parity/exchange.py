"""The files by which adapters and core exchange decisions: where they lie, of which code they are, what they hold."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import reasonblocks
from reasonblocks.types import AdapterCaps
from reasonblocks.util.files import loads
from reasonblocks_testing import Harness, write_parity
from reasonblocks_testing._parity import caps_of
from tests.parity.runs import CORPUS, GOLDEN, RECORDED, ROOT, parity_runs, skip_if_not_recorded

VARIABLE = "REASONBLOCKS_PARITY"
"""Names the folder of the files."""
FOLDER = ROOT / ".nox" / "parity-files"
"""That folder, where nothing names another."""
VERSIONS: Mapping[str, Any] = loads((ROOT / "versions.toml").read_text(encoding="utf-8"))
ADAPTERS: Mapping[str, Mapping[str, Any]] = {name: row for name, row in VERSIONS.items() if isinstance(row, dict)}

Line = Mapping[str, Any]

# --- an adapter writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was wrong with each run that an adapter has written down."""

    faults: Mapping[str, list[str]]

    def of(self, name: str) -> list[str]:
        """Skips the test that asks for a recorded run where there is no corpus."""
        skip_if_not_recorded(name, self.faults)
        return self.faults[name]


def write(adapter: str, harness: Harness, otherwise: Path) -> Written:
    """Every parity run in every mode, into the folder that REASONBLOCKS_PARITY names, or into `otherwise`."""
    name = ADAPTERS[adapter]["distribution"]
    framework = f"{name} {version(name)} on Python {sys.version_info.major}.{sys.version_info.minor}"
    package = import_module(module_of(adapter)).__file__ or ""
    code = digest(adapter, Path(package).parent)
    path = Path(os.environ.get(VARIABLE) or otherwise) / f"{adapter}.jsonl"
    return Written(faults=write_parity(harness, parity_runs().values(), path, framework=framework, code=code))


def module_of(adapter: str) -> str:
    return f"reasonblocks_{adapter.replace('-', '_')}"


@cache
def digest(adapter: str, package: Path) -> str:
    """Of all that decides what an adapter's file says: the code in use, the adapter's harness, the runs."""
    found = hashlib.sha256()
    for path in _sources(adapter, package):
        content = path.read_bytes()
        found.update(f"{path.name} {len(content)}\n".encode() + content)
    return found.hexdigest()


def _sources(adapter: str, package: Path) -> Iterator[Path]:
    core = Path(reasonblocks.__file__).parent
    for folder in (core, package, ROOT / "tests" / adapter.replace("-", "_"), ROOT / "tests" / "parity"):
        yield from (path for path in sorted(folder.rglob("*.py")) if not path.name.startswith("test_"))
    yield from sorted(GOLDEN.glob("*.jsonl"))
    yield from (path for name in RECORDED if (path := CORPUS / f"{name}.jsonl.gz").is_file())


# --- the core reads


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityFile:
    """What an adapter decided: entries in their order, by run and mode."""

    framework: str
    code: str
    modes: tuple[str, ...]
    caps: AdapterCaps
    entries: Mapping[tuple[str, str], list[Line]]


@cache
def read(path: Path) -> ParityFile:
    with path.open(encoding="utf-8") as file:
        head, *lines = map(json.loads, file)
    entries: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        entries.setdefault((line["run"], line["mode"]), []).append(line)
    return ParityFile(
        framework=head["framework"],
        code=head["code"],
        modes=tuple(head["modes"]),
        caps=caps_of(head["caps"]),
        entries=entries,
    )


def files_of(adapter: str, folder: Path | None = None) -> list[ParityFile]:
    """One, or in the matrix one a cell. Fails the test that asks where there is none, or one of other code."""
    folder = folder or Path(os.environ.get(VARIABLE) or FOLDER)
    remedy = "run `./dev parity`"
    found = {path: read(path) for path in sorted(folder.rglob(f"{adapter}.jsonl"))}
    if not found:
        pytest.fail(f"{adapter} has left no file in {folder}; {remedy}", pytrace=False)
    code = digest(adapter, ROOT / "packages" / adapter / "src" / module_of(adapter))
    for path, file in found.items():
        if file.code != code:
            pytest.fail(f"{path} was written by other code than this, or for other runs; {remedy}", pytrace=False)
    return list(found.values())
