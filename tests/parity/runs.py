"""The runs that everything steered has to decide alike: golden ones, a long mixed one, and recorded ones."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.ports import TelemetrySink
from reasonblocks_testing import Golden, ParityRun, World, load_golden
from reasonblocks_testing._parity_runs import LONG, PATIENCE_MS, long_runs, recorded_run, sayable
from reasonblocks_workbench.traces import RecordedRun, read_runs

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
CORPUS = ROOT.parent / "shared" / "corpus" / "dev"

RECORDED = {
    "agentdojo": "success",
    "intercode_react": "failure",
    "miniswe_deepseek": "success",
    "tau_airline": "failure",
    "whowhen": "failure",
}
"""Files of recorded runs, and the outcome of the one that is taken: the longest, the first of equal ones."""
MIN_STEPS, MAX_STEPS = 8, 40

NAMES = (
    *(f"golden {path.stem}" for path in sorted(GOLDEN.glob("*.jsonl"))),
    *(f"long {name}" for name in LONG),
    *(f"recorded {name}" for name in RECORDED),
)
"""Every parity run; a recorded one is not there where the corpus is not."""


def parity_runs() -> dict[str, ParityRun]:
    """The runs that are there, by name, in their order."""
    return {run.name: run for run in (*_golden_runs(), *long_runs(), *_recorded_runs())}


def skip_if_not_recorded(name: str, there: Container[str]) -> None:
    """Skips the test that asks for a recorded run where there is no corpus. Every other run has to be there."""
    if name not in there and name.startswith("recorded ") and not CORPUS.is_dir():
        pytest.skip("the shared corpus is not beside the repository")


def _golden_runs() -> Iterator[ParityRun]:
    for path in sorted(GOLDEN.glob("*.jsonl")):
        golden = load_golden(path)
        yield ParityRun(
            name=f"golden {path.stem}",
            script=sayable(golden.script),
            client=partial(_golden_client, golden),
            resume_at=golden.resumes,
        )


def _golden_client(golden: Golden, sink: TelemetrySink) -> ReasonBlocks:
    return golden.client(World(golden), sinks=[sink], step_deadline_ms=PATIENCE_MS)


def _recorded_runs() -> Iterator[ParityRun]:
    for name, outcome in RECORDED.items():
        path = CORPUS / f"{name}.jsonl.gz"
        if path.is_file():
            yield replace(recorded_run(_longest(path, outcome)), name=f"recorded {name}")


def _longest(path: Path, outcome: str) -> RecordedRun:
    runs = (run for run in read_runs(str(path)) if isinstance(run, RecordedRun) and run.outcome == outcome)
    return max((run for run in runs if _fits(run)), key=lambda run: len(run.steps))


def _fits(run: RecordedRun) -> bool:
    """Of a length that takes seconds, and no step but the last without a tool call: there a real agent would end."""
    return MIN_STEPS <= len(run.steps) <= MAX_STEPS and all(step.tool_calls for step in run.steps[:-1])
