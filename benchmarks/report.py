"""The time and size of a report, and the time that a browser takes to open it: --columns.

The runs are made up: their calls, results and scores are drawn with a fixed seed, and a step's event has about the size
that recorded runs have. Without a Chromium the browser's columns are empty, and a line says why.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from _browser import browser, missing

from reasonblocks.events import RunFinish, RunStart, StepEvent
from reasonblocks.types import RunInfo
from reasonblocks_workbench.report import OnePage, page_of_log, run_page
from reasonblocks_workbench.traces import RunLog

COLUMNS = {
    "runs": "so many runs in one file",
    "steps": "so many steps in each",
    "write_s": "the time to render and pack the file",
    "mb": "the size of the file",
    "kb_a_run": "the same, for each run",
    "page_kb": "the size of a run's own page, as `--pages` writes it",
    "open_s": "from the navigation to the drawn list, in Chromium",
    "search_s": "from a word in the search to the drawn, filtered list",
    "run_s": "from the click on a run to its drawn page",
}
STARTED = 1_700_000_000.0
MONITORS = (
    "claim_contradiction", "semantic_loop", "verification_skip", "cyclic_compression", "late_sprawl",
    "silent_topic_drift",
)  # fmt: skip
TOOLS = ("read_file", "run_tests", "edit_file", "search", "list_files")
SYLLABLES = "ba ce di fo gu ha ki lo mu ne pa ri so tu va we xi yo za chi".split()
DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


def log(seed: int, steps: int) -> RunLog:
    """Make up a run."""
    random, run_id = Random(seed), f"run-{seed}"
    words = [f"{random.choice(SYLLABLES)}{random.choice(SYLLABLES)}{random.randrange(9)}" for _ in range(240)]

    def text(most: int) -> str:
        return " ".join(random.choices(words, k=random.randrange(most // 3, most)))

    info = RunInfo(run_id=run_id, agent_name=f"agent-{seed % 7}", task=f"Task {seed}: {text(12)}", model="scripted")
    start = RunStart(run=info, timestamp=STARTED + 60 * seed)
    events, level = list[StepEvent](), 0.3
    for index in range(steps + 1):
        level = min(1.0, max(0.0, level + random.uniform(-0.2, 0.22)))
        events.append(_event(run_id, index, steps, level, random, text))
    outcome = random.choice(("success", "success", "failure: RuntimeError", "stopped: stalled"))
    return RunLog(
        run_id=run_id,
        start=start,
        steps=tuple(events),
        finish=RunFinish(run_id=run_id, outcome=outcome, timestamp=start.timestamp + 3.0 * steps),
        file="runs.jsonl",
        line=seed + 1,
    )


def _event(run_id: str, index: int, steps: int, level: float, random: Random, text: object) -> StepEvent:
    assert callable(text)
    told = index > 2 and random.random() < 0.05
    state = "INIT" if index == 0 else "SLOW" if level > 0.75 else "FAST" if level < 0.15 else "NORMAL"
    return StepEvent(
        run_id=run_id,
        step_index=index,
        timestamp=STARTED + 3.0 * index,
        thought=text(30) if index else "",
        action=random.choice(TOOLS) if index else "",
        action_input=json.dumps({"path": text(6), "text": text(20)}) if index else "",
        observation=text(180) if index else "",
        tokens=random.randrange(500, 9000),
        step_model="scripted",
        injection_sources=("MonitorSteeringInjection",) if told else (),
        intervention_texts=(text(50),) if told else (),
        injections=(text(10),) if told else (),
        monitors_fired=("semantic_loop",) if told else (),
        failure_type="loop" if told else None,
        scores={name: round(random.random() * (0.9 if told else 0.4), 3) for name in MONITORS},
        composite=round(level / 3, 3),
        metadata={
            "fsm_state": state,
            "difficulty": round(level, 3) if index else None,
            "gate_decision": "final" if index == steps else "inject" if told else "quiet",
            "latency_ms": 1000 * random.random(),
            **({"final": True} if index == steps else {}),
        },
    )


def measured(runs: int, steps: int, folder: Path) -> dict[str, object]:
    """Write a report of so many runs, and open it."""
    logs = [log(seed, steps) for seed in range(runs)]
    path = folder / f"report-{runs}-{steps}.html"
    began = time.perf_counter()
    page = OnePage()
    for one in logs:
        page.add(page_of_log(one))
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(page.parts())
    row: dict[str, object] = {"runs": runs, "steps": steps, "write_s": round(time.perf_counter() - began, 2)}
    size = path.stat().st_size
    row |= {"mb": round(size / 1e6, 2), "kb_a_run": round(size / 1e3 / runs, 1)}
    row["page_kb"] = round(len(run_page(page_of_log(logs[0])).encode()) / 1e3, 1)
    return {**row, **(opened(path, runs) if not missing() else {})}


def opened(path: Path, runs: int) -> dict[str, object]:
    """Return the seconds of the browser's work, each until the next frame is drawn."""
    with browser() as chromium:
        page = chromium.new_context(offline=True, viewport={"width": 1440, "height": 1000}).new_page()
        began = time.perf_counter()
        page.goto(path.as_uri())
        page.evaluate(DRAWN)
        found: dict[str, object] = {"open_s": round(time.perf_counter() - began, 2)}
        if runs > 1:
            found["search_s"] = seconds(lambda: page.fill('[name="q"]', f"run-{runs - 1}"), page)
            found["run_s"] = seconds(lambda: page.click(".runs tbody tr:not([hidden]) a"), page, "#opened article")
        return found


def seconds(act: object, page: object, until: str = "") -> float:
    assert callable(act)
    began = time.perf_counter()
    act()
    if until:
        page.wait_for_selector(until)  # type: ignore[attr-defined]  # a page, whose module may be missing
    page.evaluate(DRAWN)  # type: ignore[attr-defined]
    return round(time.perf_counter() - began, 2)


def rows(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    with tempfile.TemporaryDirectory() as folder:
        for runs, steps in ((arguments.runs, 18), (1, 1_000)):
            yield measured(runs, steps, Path(folder))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000, help="runs in the file (2,000)")
    parser.add_argument("--json", action="store_true", help="print one object a line, nothing else on stdout")
    parser.add_argument("--columns", action="store_true", help="explain the columns and end")
    arguments = parser.parse_args()
    if arguments.columns:
        print("\n".join(f"{name:10} {meaning}" for name, meaning in COLUMNS.items()))
        return 0
    if missing():
        print(f"no browser is measured: {missing()}", file=sys.stderr)
    for row in rows(arguments):
        print(json.dumps(row) if arguments.json else "  ".join(f"{name} {row.get(name, '-')}" for name in COLUMNS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
