"""The cells of the matrix: what is tested on which Python, with which versions. As a script, prints them as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VERSIONS = tomllib.loads((Path(__file__).parents[1] / "versions.toml").read_text(encoding="utf-8"))
PYTHONS: Sequence[str] = VERSIONS["python"]
ADAPTERS: Mapping[str, Mapping[str, Any]] = {name: table for name, table in VERSIONS.items() if isinstance(table, dict)}
ENDS = (PYTHONS[0], PYTHONS[-1])
LONGEST = ("claude-agent", "threads", "server", "openai-agents", "core", "install", "langchain")
"""The parts, the one that takes longest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A part on one Python: a package, or "install" for the README's installs.

    `versions` is "oldest" or "newest": of an adapter's framework, or of what the server or threads require. A `whole`
    cell adds the tests that take long (`REASONBLOCKS_WHOLE`); another one runs what `./dev tests` runs.
    """

    part: str
    python: str
    versions: str = "newest"
    whole: bool = False

    @property
    def name(self) -> str:
        versions = "" if self.part in ("core", "install") else f"-{self.versions}"
        return f"matrix-{self.part}{versions}-{self.python}"


def _cells() -> Iterator[Cell]:
    oldest, newest = ENDS
    for part in (*ADAPTERS, "server", "threads"):
        yield Cell(part=part, python=oldest, versions="oldest", whole=True)
        yield Cell(part=part, python=oldest)
        if part in ADAPTERS:  # what the others require is older than the newest Python, which some do not support
            yield Cell(part=part, python=newest, versions="oldest")
        yield Cell(part=part, python=newest, whole=True)
    for python in PYTHONS:
        yield Cell(part="core", python=python, whole=python == newest)
        yield Cell(part="install", python=python)


CELLS = sorted(_cells(), key=lambda cell: (not cell.whole, LONGEST.index(cell.part)))
"""All cells, the longest first."""

if __name__ == "__main__":
    sys.stdout.write(json.dumps([{"session": cell.name, "python": cell.python} for cell in CELLS]))
