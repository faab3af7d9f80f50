"""Checks that the core works without any of its extras: `./dev wheel` runs this in such an environment.

Every module can be imported, a custom loop is steered, `reasonblocks replay` and `reasonblocks doctor` run, and each
object that needs an extra raises an error with the install command when it is created.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import reasonblocks
from reasonblocks import (
    CodebaseMemory,
    HttpSink,
    OpenTelemetrySink,
    QdrantStore,
    ReasonBlocks,
    Step,
    StepInput,
    StepOutcome,
    ToolCall,
    ToolResult,
    testing,
)
from reasonblocks._extras import EXTRAS
from reasonblocks._masking import detectors
from reasonblocks.backends import embed
from reasonblocks.backends._edge_store import EdgeStore
from reasonblocks.calibration._fit import need_scikit_learn
from reasonblocks.cli._memory_command import mcp_server
from reasonblocks.exceptions import ExtraMissing
from reasonblocks.report import RunPage, run_page

NOWHERE = "http://127.0.0.1:9"
WITH_AN_EXTRA = (
    ("mcp", "reasonblocks.memory._mcp_server"),
    ("pytest", "reasonblocks.testing._"),
    ("opentelemetry", "reasonblocks.backends._otel_sink._spans"),
)
"""The packages that modules need which are imported only where they are installed, and how their names begin."""
RECORDED = {"run_id": "run-1", "outcome": "failure", "steps": [{"thought": "I look.", "action": "ls"}]}


def at_qdrant_url() -> object:
    os.environ["QDRANT_URL"] = NOWHERE
    try:
        return ReasonBlocks()
    finally:
        del os.environ["QDRANT_URL"]


NEEDS: dict[str, list[Callable[[], object]]] = {
    "calibrate": [need_scikit_learn],
    "edge": [lambda: EdgeStore("patterns")],
    "fastembed": [lambda: embed.FastEmbedEmbedder("some/model")],
    "http": [lambda: ReasonBlocks(base_url=NOWHERE), lambda: HttpSink(NOWHERE)],
    "learn": [detectors],
    "mcp": [mcp_server],
    "memory": [lambda: CodebaseMemory("acme/search")],
    "model2vec": [lambda: embed.Model2VecEmbedder("some/model")],
    "openai-embed": [lambda: embed.OpenAIEmbedder("some-model", NOWHERE)],
    "otel": [OpenTelemetrySink],
    "qdrant": [lambda: QdrantStore(NOWHERE), at_qdrant_url],
    "report": [lambda: run_page(RunPage(run_id="run-1", rows=()))],
    "sentence-transformers": [lambda: embed.SentenceTransformerEmbedder("some/model")],
    "testing": [lambda: testing.ConformanceSuite],
}
"""A part that needs each extra, except `cli`: without it, output is plain."""


def main() -> None:
    nothing_of_an_extra_is_installed()
    every_module_is_imported()
    a_loop_is_steered()
    the_commands_run()
    what_is_missing_is_named()
    print("the bare core works")


def nothing_of_an_extra_is_installed() -> None:
    there = [name for name in sorted(names_in_extras()) if is_installed(name)]
    assert not there, f"the core is not bare: {there} are installed"


def names_in_extras() -> set[str]:
    return {re.split(r"[\[<>=]", requirement)[0] for wanted in EXTRAS.values() for requirement in wanted}


def is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def every_module_is_imported() -> None:
    """Import every module except `__main__`, which would run, and those that only run with an extra.

    These are the conformance scenarios, which are tests, the spans of OpenTelemetry, and the MCP server.
    """
    for found in pkgutil.walk_packages(reasonblocks.__path__, "reasonblocks."):
        try:
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if not any(error.name == missing and found.name.startswith(start) for missing, start in WITH_AN_EXTRA):
                raise


def a_loop_is_steered() -> None:
    with ReasonBlocks(strict=True) as rb, rb.session(task="Fix the failing tests.") as session:
        decision = session.begin_step(StepInput())
        for n in range(6):
            session.end_step(decision, StepOutcome(model="some-model"))
            call = ToolCall(id=f"c{n}", name="run_tests")
            result = ToolResult(call_id=call.id, output="3 failed")
            completed = Step(thought="I run the tests again.", tool_calls=(call,), tool_results=(result,))
            decision = session.begin_step(StepInput(completed=completed))
        told = [text for entry in session.step_log for text in entry.intervention_texts]
    assert any("run_tests" in text for text in told), told


def the_commands_run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "runs.jsonl")
        file.write_text(json.dumps(RECORDED), encoding="utf-8")
        replayed = json.loads(printed("replay", str(file), "--json"))
        assert (replayed["run_id"], len(replayed["steps"])) == ("run-1", 1), replayed
        assert "1 steps" in printed("replay", str(file))
        assert json.loads(printed("doctor", "--json"))["problems"] == []
        assert "not installed (optional): pip install" in printed("doctor")


def printed(*arguments: str) -> str:
    command = [str(Path(sys.executable).with_name("reasonblocks")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def what_is_missing_is_named() -> None:
    assert sorted([*NEEDS, "cli"]) == sorted(EXTRAS)
    for extra, makers in NEEDS.items():
        for make in makers:
            error = raised(make)
            assert error is not None, f"nothing reported the missing extra {extra}"
            assert (error.extra, error.requirements) == (extra, EXTRAS[extra]), error


def raised(make: Callable[[], object]) -> ExtraMissing | None:
    try:
        make()
    except ExtraMissing as error:
        return error
    return None


if __name__ == "__main__":
    main()
