"""What `import reasonblocks` costs over Python's own start: CPU of fresh processes, in pairs, and what it brings."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from statistics import median

CODES = {
    "import reasonblocks": ("import reasonblocks", 60.0),
    "from reasonblocks import ReasonBlocks": ("from reasonblocks import ReasonBlocks", 150.0),
    "ReasonBlocks()": ("from reasonblocks import ReasonBlocks; ReasonBlocks()", None),
}
"""What is run, and the most that it may cost, in milliseconds of CPU."""
HEAVY = ("httpx", "numpy", "qdrant_client", "grpc", "langchain", "langchain_core", "langgraph", "pydantic", "asyncio")
TOLD = """
import resource, sys
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, *(name for name in {heavy!r} if name in sys.modules))
"""


def run(code: str, environment: Mapping[str, str]) -> tuple[float, list[str]]:
    """Milliseconds of CPU of one fresh process, user and system, and the heavy modules that it has loaded."""
    command = [sys.executable, "-c", code + TOLD.format(heavy=HEAVY)]
    done = subprocess.run(command, env=dict(environment), capture_output=True, text=True, check=True)
    seconds, *loaded = done.stdout.split()
    return float(seconds) * 1000, loaded


def with_bytecode(folder: str) -> dict[str, str]:
    """An environment in which modules are compiled once, as an installation does."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": folder}


def measure(name: str, pairs: int, environment: Mapping[str, str]) -> dict[str, object]:
    """The median over pairs of processes, one with the import and one without."""
    code, limit = CODES[name]
    _, loaded = run(code, environment)
    over = [run(code, environment)[0] - run("", environment)[0] for _ in range(pairs)]
    cpu = median(over)
    return {
        "code": name,
        "cpu_ms": round(cpu, 1),
        "least_ms": round(min(over), 1),
        "most_ms": round(max(over), 1),
        "limit_ms": limit,
        "within_limit": limit is None or cpu <= limit,
        "heavy_modules": loaded,
        "pairs": pairs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--pairs", type=int, default=11, help="pairs of processes (default 11)")
    given = parser.parse_args()
    if not given.json:
        print(f"CPU over Python's own start, median of {given.pairs} pairs of fresh processes\n")
        print(f"{'code':40}{'ms':>8}{'limit':>8}   heavy modules")
    with tempfile.TemporaryDirectory() as folder:
        environment = with_bytecode(folder)
        for name in CODES:
            row = measure(name, given.pairs, environment)
            print(json.dumps(row) if given.json else table_row(row), flush=True)


def table_row(row: dict[str, object]) -> str:
    heavy = row["heavy_modules"]
    named = ", ".join(map(str, heavy)) if isinstance(heavy, list) and heavy else "none"
    return f"{row['code']:40}{row['cpu_ms']:>8}{row['limit_ms'] or '-':>8}   {named}"


if __name__ == "__main__":
    main()
