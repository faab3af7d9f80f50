"""Checks that the core works without any of its extras: `./dev wheel` runs this in such an environment.

Every module can be imported, a custom loop is steered, `python -m reasonblocks` names the package of the command, and
each object that needs an extra raises an error with the install command when it is created.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution

import reasonblocks
from reasonblocks import (
    Budget,
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
)
from reasonblocks.backends import embed
from reasonblocks.exceptions import ExtraMissing
from reasonblocks.util.extras import EXTRAS

NOWHERE = "http://127.0.0.1:9"
WITH_AN_EXTRA = (("opentelemetry", "reasonblocks.backends.otel_sink._spans"),)
"""The packages that modules need which are imported only where they are installed, and how their names begin."""


def at_qdrant_url() -> object:
    os.environ["QDRANT_URL"] = NOWHERE
    try:
        return ReasonBlocks()
    finally:
        del os.environ["QDRANT_URL"]


NEEDS: dict[str, list[Callable[[], object]]] = {
    "cost": [lambda: ReasonBlocks(budget=Budget(cost_usd=1))],
    "http": [lambda: ReasonBlocks(base_url=NOWHERE), lambda: HttpSink(NOWHERE)],
    "memory": [lambda: CodebaseMemory("acme/search").store("The tests need no service.")],
    "openai-embed": [lambda: embed.OpenAIEmbedder("some-model", NOWHERE)],
    "otel": [OpenTelemetrySink],
    "qdrant": [lambda: QdrantStore(NOWHERE), at_qdrant_url],
}
"""A part that needs each extra."""


def main() -> None:
    nothing_of_an_extra_is_installed()
    every_module_is_imported()
    a_loop_is_steered()
    the_package_of_the_command_is_named()
    what_is_missing_is_named()
    print("the bare core works")


def nothing_of_an_extra_is_installed() -> None:
    there = [name for name in sorted({*names_in_extras(), "reasonblocks-workbench"}) if is_installed(name)]
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
    """Import every module except `__main__`, which would run, and the spans of OpenTelemetry."""
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


def the_package_of_the_command_is_named() -> None:
    done = subprocess.run([sys.executable, "-m", "reasonblocks"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "pip install ./packages/core ./packages/workbench" in done.stderr, done


def what_is_missing_is_named() -> None:
    assert sorted(NEEDS) == sorted(EXTRAS)
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
