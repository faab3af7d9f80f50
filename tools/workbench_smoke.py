"""Checks that the workbench works without any of its extras: `./dev wheel` runs this in such an environment.

Every module can be imported, `reasonblocks replay`, `report` and `doctor` run, and each command that needs an extra or
the server names the install command.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import reasonblocks_workbench
from reasonblocks.exceptions import ExtraMissing
from reasonblocks.masking import detectors
from reasonblocks.util.extras import pip_install
from reasonblocks_workbench.cli._main import PLUGINS as COMMANDS
from reasonblocks_workbench.cli._memory import mcp_server
from reasonblocks_workbench.extras import EXTRAS

MCP = ("reasonblocks_workbench.mcp_lines", "reasonblocks_workbench.mcp_server")
"""The modules that are imported only where the extra `mcp` is installed."""
RECORDED = {"run_id": "run-1", "outcome": "failure", "steps": [{"thought": "I look.", "action": "ls"}]}
NEEDS: dict[str, Callable[[], object]] = {"learn": detectors, "mcp": mcp_server}
"""A part that needs each extra."""


def main() -> None:
    every_module_is_imported()
    the_commands_run()
    what_is_missing_is_named()
    print("the bare workbench works")


def every_module_is_imported() -> None:
    for found in pkgutil.walk_packages(reasonblocks_workbench.__path__, "reasonblocks_workbench."):
        if found.name not in MCP:
            importlib.import_module(found.name)


def the_commands_run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file, page = Path(folder, "runs.jsonl"), Path(folder, "runs.html")
        file.write_text(json.dumps(RECORDED), encoding="utf-8")
        replayed = json.loads(printed("replay", str(file), "--json"))
        assert (replayed["run_id"], len(replayed["steps"])) == ("run-1", 1), replayed
        assert "1 step," in printed("replay", str(file))
        printed("report", str(file), "--out", str(page))
        assert "run-1" in page.read_text(encoding="utf-8")
        assert json.loads(printed("doctor", "--json"))["problems"] == []
        assert "not installed (optional): pip install" in printed("doctor")
        for command in COMMANDS:
            needed = "pip install ./packages/core ./packages/workbench ./packages/server"
            assert done(command).stderr.endswith(f"{needed}\n"), done(command)


def printed(*arguments: str) -> str:
    ended = done(*arguments)
    assert ended.returncode == 0, ended
    return ended.stdout


def done(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("reasonblocks")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def what_is_missing_is_named() -> None:
    assert sorted(NEEDS) == sorted(EXTRAS)
    for extra, make in NEEDS.items():
        said = str(raised(make))
        assert said.endswith(pip_install(EXTRAS[extra])), (extra, said)


def raised(make: Callable[[], object]) -> ExtraMissing | None:
    try:
        make()
    except ExtraMissing as error:
        return error
    return None


if __name__ == "__main__":
    main()
